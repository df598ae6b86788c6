import Foundation
import Origin
import Testing

/// `segdl adopt` that is killed, and what the next run makes of it.
@Suite("Killing an adoption", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct AdoptKillTests {
    private static let content = AdoptTests.content
    private static let partial = Array(AdoptTests.content[..<AdoptTests.found])

    private static func run(_ body: (Nginx, Segdl) async throws -> Void) async throws {
        try await Nginx.run(Nginx.Settings(stopsAfter: "4m")) { nginx in
            try nginx.serve(Self.content)
            try await withCommand { command in
                try AdoptTests.write(Self.partial, to: "f.iso", command)
                try await body(nginx, command)
            }
        }
    }

    @Test("While it compares, the file is as it was")
    func comparing() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                try AdoptTests.write(Self.partial, to: "f.iso", command)
                let killed = try await command.run(["adopt", "f.iso", origin.url("/32M/x?stall-after=100:all")]) {
                    await origin.log.waitForRequests(5)
                    kill($0, SIGKILL)
                }
                #expect(killed.status == -SIGKILL, "\(killed)")
                #expect(command.holds("f.iso", Self.partial) && AdoptTests.hasOnly(["f.iso"], command))
                #expect(try await command.run("adopt", "-q", "f.iso", origin.url("/32M/x")).status == 0)
                #expect(command.holds("f.iso", Self.content))
            }
        }
    }

    @Test("While it fetches, resume or the same command completes it", arguments: [["resume", "f.iso"], []])
    func fetching(resuming: [String]) async throws {
        try await Self.run { nginx, command in
            try nginx.nearlyStop(true)
            let arguments = ["adopt", "--json", "-s", "1", "f.iso", nginx.url()]
            let killed = try await command.run(arguments, signal: SIGKILL, afterWriting: 2 << 20)
            #expect(killed.status == -SIGKILL && killed.event("adopted") != nil, "\(killed)")
            #expect(!command.exists("f.iso") && command.exists("f.iso.segdl-part"))
            try nginx.nearlyStop(false)
            let resumed = try await command.run(
                resuming.isEmpty ? arguments : ["resume", "--json", "-s", "1", "f.iso"])
            #expect(resumed.status == 0 && command.holds("f.iso", Self.content), "\(resumed)")
            // It remains true how the bytes were proven, and they are not compared again.
            #expect(resumed.event("completed")?["verified_by"] as? String == "comparison", "\(resumed)")
            #expect(resumed.bytesFetched ?? .max <= Self.content.count - Self.partial.count, "\(resumed)")
            #expect(try AdoptTests.names(command) == ["f.iso"])
        }
    }

    @Test(
        "Before any step that changes a name, the next run completes it",
        .enabled(if: Strace.path != nil, "strace is not installed"),
        arguments: [("rename", 1), ("renameat2", 1), ("fsync", 1), ("fsync", 2), ("fsync", 3), ("fdatasync", 1)])
    func steps(call: String, number: Int) async throws {
        try await Self.run { nginx, command in
            let script = """
                exec '\(Strace.path ?? "")' -f -o /dev/null -e trace=\(call) \
                    -e inject=\(call):signal=SIGKILL:when=\(number) "$0" "$@"
                """
            let killed = try await command.run(["adopt", "-q", "f.iso", nginx.url()], shell: script)
            #expect(killed.status == -SIGKILL || killed.status == 137, "\(killed)")
            // What the other program has fetched is there under one of two names.
            let kept = ["f.iso", "f.iso.segdl-part"].filter {
                command.bytes($0)?.prefix(Self.partial.count) == Data(Self.partial)
            }
            #expect(kept.count == 1, "\(killed)")
            let next = try await command.run("adopt", "--json", "-s", "1", "f.iso", nginx.url())
            #expect(next.status == 0 && command.holds("f.iso", Self.content), "\(next)")
            #expect(next.bytesFetched ?? .max <= Self.content.count - Self.partial.count, "\(next)")
            #expect(try AdoptTests.names(command) == ["f.iso"])
        }
    }
}
