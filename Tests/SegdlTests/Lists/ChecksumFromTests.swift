import Foundation
import Testing

/// `--checksum-from` with lists on nginx and on disk.
@Suite("Checksums from lists", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct ChecksumFromTests {
    /// The text `segdl`, and its digests computed by sha1sum and sha256sum.
    private static let content: [UInt8] = Array("segdl".utf8)
    private static let sha1 = "60a4cc01f1197a8eaa10dd31ceb3ca7852042729"
    private static let sha256 = "2a9c847a772c846799ab6862291b9b850d6029bc5fdc2c96eb36ae8a1fa6d231"

    @Test("Every file is verified against its digest in the list", arguments: [true, false])
    func list(isRemote: Bool) async throws {
        try await Nginx.run { nginx in
            try await withCommand { command in
                for name in ["a b.bin", "b.bin", "c.bin"] { try nginx.serve(Self.content, as: name) }
                let wrong = String(repeating: "0", count: 40)
                let text = "\(Self.sha256) *a b.bin\nSHA1 (b.bin) = \(Self.sha1)\n\(wrong)  c.bin\n"
                try nginx.serve(Array(text.utf8), as: "SUMS")
                try Data(text.utf8).write(to: URL(fileURLWithPath: command.path("SUMS")))
                let from = ["-q", "--checksum-from", isRemote ? nginx.url("SUMS") : "SUMS"]
                let good = try await command.run(from + [nginx.url("a%20b.bin"), nginx.url("b.bin")])
                #expect(good.status == 0 && command.exists("a b.bin") && command.exists("b.bin"), "\(good)")
                let bad = try await command.run(from + [nginx.url("c.bin")])
                #expect(bad.status == 9 && !command.exists("c.bin"), "\(bad)")
                let unnamed = try await command.run(from + [nginx.url("d.bin")])
                #expect(unnamed.status == 2 && unnamed.errors.contains("has no entry for d.bin"), "\(unnamed)")
                let verified = try await command.run(["verify"] + from + ["b.bin"])
                #expect(verified.status == 0, "\(verified)")
            }
        }
    }

    @Test(
        "A file must have all digests that the list has of it, whichever is wrong", arguments: ["sha1", "sha256", nil])
    func severalDigests(wrong: String?) async throws {
        try await Nginx.run { nginx in
            try await withCommand { command in
                try nginx.serve(Self.content)
                let lines = [("sha1", Self.sha1), ("sha256", Self.sha256)].map { name, hex in
                    "\(name == wrong ? String(repeating: "0", count: hex.utf8.count) : hex)  file.bin\n"
                }
                try Data(lines.joined().utf8).write(to: URL(fileURLWithPath: command.path("SUMS")))
                let outcome = try await command.run("-q", "--checksum-from", "SUMS", nginx.url())
                #expect(outcome.status == (wrong == nil ? 0 : 9), "\(outcome)")
                #expect(command.exists("file.bin") == (wrong == nil))
            }
        }
    }

    @Test("A missing or malformed list is reported, and nothing is fetched")
    func noList() async throws {
        try await Nginx.run { nginx in
            try await withCommand { command in
                try nginx.serve(Self.content)
                try nginx.serve(Array("<html>".utf8), as: "page")
                for (place, status) in [(nginx.url("none"), 8), ("none", 3), (nginx.url("page"), 2)]
                    as [(String, Int32)]
                {
                    let outcome = try await command.run("-q", "--checksum-from", place, nginx.url())
                    #expect(outcome.status == status && !command.exists("file.bin"), "\(outcome)")
                }
            }
        }
    }

    @Test("Credentials are not sent to the list's server if it is another one")
    func credentials() async throws {
        try await Nginx.run(Nginx.Settings(hosts: 2)) { nginx in
            try await withCommand { command in
                try nginx.serve(Self.content)
                try nginx.serve(Array("\(Self.sha1)  file.bin".utf8), as: "SUMS", host: 2)
                let outcome = try await command.run(
                    "-q", "-u", "user:word", "-b", "k=v", "--checksum-from", nginx.url("SUMS", host: 2), nginx.url())
                #expect(outcome.status == 0, "\(outcome)")
                let asked = nginx.accessLog.split(separator: "\n")
                #expect(asked.contains { $0.contains("127.0.0.1 Basic") && $0.contains("k=v") })
                #expect(
                    asked.filter { $0.contains("SUMS") }.allSatisfy { !$0.contains("Basic") && !$0.contains("k=v") })
            }
        }
    }
}
