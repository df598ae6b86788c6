import Foundation
import Origin
import Testing

/// segdl as the transfer agent of Git LFS.
@Suite("Git LFS")
struct GitLFSTests {
    private static let hasGitLFS = ["/usr/bin", "/usr/local/bin"].contains {
        FileManager.default.isExecutableFile(atPath: $0 + "/git-lfs")
    }
    /// The SHA-256 of the origin's 64 KiB with seed 1 and 2, computed by sha256sum.
    private static let objects = [
        "1ebd584fa2a31942b2dfbbda3f53aa00f0e7abe48e88e96c200f0d57845e61a7",
        "c123686bd00e88b1a1a231c5b1d0f140ffe6830f6a2507c8986414e9a1c2389d",
    ]

    /// An LFS server: it answers every batch with both objects, and requires the header field that it states.
    private static func answer(_ request: RoutedRequest, transfer: String) -> RoutedAnswer? {
        if request.path == "/info/lfs/objects/batch" {
            let objects = Self.objects.map { oid in
                """
                {"oid": "\(oid)", "size": 65536, "authenticated": true, "actions": {"download":
                {"href": "http://\(request.host)/objects/\(oid)", "header": {"Authorization": "RemoteAuth abc"}}}}
                """
            }
            return .document(
                fields: [("Content-Type", "application/vnd.git-lfs+json")],
                #"{"transfer": "\#(transfer)", "objects": [\#(objects.joined(separator: ", "))]}"#)
        }
        guard request.path.hasPrefix("/objects/") else { return nil }
        guard request["authorization"] == "RemoteAuth abc" else { return .document(status: 403, "no token") }
        return .content("/64K/object?seed=\(request.path.hasSuffix(Self.objects[0]) ? 1 : 2)&close-after=40K")
    }

    /// Creates a repository with two pointers, and pulls their objects with segdl as the agent of this name.
    private static func script(agent: String, url: String) -> String {
        let pointers = Self.objects.enumerated().map { number, oid in
            #"printf 'version https://git-lfs.github.com/spec/v1\noid sha256:\#(oid)\nsize 65536\n' >\#(number + 1).bin"#
        }
        return """
            export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
            git init -q repository && cd repository && \(pointers.joined(separator: " && ")) &&
            git -c user.name=n -c user.email=e add . && git -c user.name=n -c user.email=e commit -q -m pointers &&
            echo '*.bin filter=lfs diff=lfs merge=lfs -text' >.gitattributes && git lfs install --local >/dev/null &&
            git config lfs.url \(url) && git config lfs.customtransfer.\(agent).path "$0" &&
            git config lfs.customtransfer.\(agent).args git-lfs-agent &&
            git config lfs.customtransfer.\(agent).direction download && git lfs pull
            """
    }

    @Test(
        "git lfs pull downloads the objects with segdl, if the server chooses it",
        .enabled(if: Self.hasGitLFS, "git-lfs is not installed"))
    func pull() async throws {
        try await withOrigin { origin in
            origin.route { Self.answer($0, transfer: "segdl") }
            try await withCommand { command in
                let outcome = try await command.run(
                    [], shell: Self.script(agent: "segdl", url: origin.url("/info/lfs")))
                #expect(outcome.status == 0, "\(outcome)")
                for number in 1...2 {
                    let content = OriginContent(seed: UInt64(number))
                    let path = command.path("repository/\(number).bin")
                    #expect(content.firstMismatch(inFileAt: path, length: 65536) == nil, "\(outcome)")
                }
                let requests = origin.log.snapshot().requests.filter { $0.path.contains("/64K/") }
                // Each body is cut once. Git LFS itself would send another User-Agent.
                #expect(requests.count >= 4 && requests.allSatisfy { $0["user-agent"]?.hasPrefix("segdl/") == true })
            }
        }
    }

    @Test("The agent reports progress and the file, verifies the digest, and refuses uploads and other input")
    func messages() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let good = Self.objects[0]
                let download = { (oid: String, path: String) in
                    #"{"event":"download","oid":"\#(oid)","size":65536,"action":{"href":"\#(origin.url(path))"}}"#
                }
                let messages = [
                    #"{"event":"init","operation":"download","remote":"origin","concurrent":true,"concurrenttransfers":8}"#,
                    download(good, "/64K/x"), download(Self.objects[1], "/64K/x"), download("../x", "/64K/x"),
                    download(good.uppercased(), "/64K/x"), #"{"event":"download","oid":"\#(good)","size":1}"#,
                    #"{"event":"upload","oid":"\#(good)","size":1,"path":"x"}"#, #"{"event":"terminate"}"#,
                    "not reached",
                ]
                try command.write(messages.joined(separator: "\n") + "\n", to: "messages")
                let outcome = try await command.run(
                    ["git-lfs-agent", "-d", "objects"], shell: #""$0" "$@" <messages"#)
                #expect(outcome.status == 0, "\(outcome)")
                let replies = outcome.events
                #expect(replies.first?.isEmpty == true, "\(outcome.output)")
                let complete = replies.filter { $0["event"] as? String == "complete" }
                #expect(complete.count == 6, "\(outcome.output)")
                #expect(complete.first?["path"] as? String == "objects/\(good)")
                let errors = complete.dropFirst().map { $0["error"] as? [String: Any] }
                #expect(errors.map { $0?["code"] as? Int } == [9, 7, 7, 2, 2], "\(outcome.output)")
                let progress = replies.filter { $0["event"] as? String == "progress" && $0["oid"] as? String == good }
                #expect(progress.last?["bytesSoFar"] as? Int == 65536)
                #expect(progress.reduce(0) { $0 + ($1["bytesSinceLast"] as? Int ?? 0) } == 65536)
                #expect(
                    OriginContent(seed: 1).firstMismatch(inFileAt: command.path("objects/\(good)"), length: 65536)
                        == nil)

                for (input, status) in [
                    ("{\"event\":\"init\",\"operation\":\"upload\"}", Int32(0)), ("{}", 7), ("x", 7),
                ] {
                    let outcome = try await command.run(
                        ["git-lfs-agent", "--dir", "objects"], shell: "echo '\(input)' | \"$0\" \"$@\"")
                    #expect(outcome.status == status, "\(outcome)")
                    #expect(status != 0 || outcome.output.contains("does not upload"), "\(outcome)")
                }
                let outside = try await command.run(["git-lfs-agent"], shell: #""$0" "$@" </dev/null"#)
                #expect(outside.status == 3 && outside.errors.contains("-d"), "\(outside)")
            }
        }
    }
}
