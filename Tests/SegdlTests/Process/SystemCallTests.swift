import Foundation
import Origin
import Testing

/// The path of strace, if it is installed.
enum Strace {
    static let path = ["/usr/bin/strace", "/bin/strace"].first { FileManager.default.isExecutableFile(atPath: $0) }
}

/// The command's system calls, as strace sees them.
@Suite(.enabled(if: Strace.path != nil, "strace is not installed"))
struct SystemCallTests {
    private static func traced(_ command: Segdl, _ arguments: [String], calls: String) async throws -> (
        status: Int32, lines: [Substring]
    ) {
        let outcome = try await command.run(
            arguments, shell: #"\#(Strace.path ?? "") -f -y -o calls -e trace=\#(calls) "$0" "$@""#)
        let text = try String(contentsOfFile: command.path("calls"), encoding: .utf8)
        return (outcome.status, text.split(separator: "\n"))
    }

    private static func sha256(_ command: Segdl, _ url: String) async throws -> String {
        _ = try await command.run("-q", "-o", "known", url)
        return String(try await command.run([], shell: "sha256sum known").output.prefix(64))
    }

    @Test("A digest is computed while the file is received: the part is not read", arguments: ["1", "4", "auto"])
    func inFlight(segments: String) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/96M/f.bin")
            let digest = try await Self.sha256(command, url)
            let (status, lines) = try await Self.traced(
                command, ["-q", "-s", segments, "--checksum", "sha256=\(digest)", "-o", "f.bin", url],
                calls: "read,pread64,preadv,preadv2,pwrite64")
            #expect(status == 0 && command.holds("f.bin", 96 << 20))
            #expect(lines.contains { $0.contains("pwrite64(") && $0.contains("f.bin.segdl-part>") })
            #expect(!lines.contains { $0.contains("read") && $0.contains("f.bin.segdl-part>") })
        }
    }

    @Test("A resumed download reads only the bytes that its digest lacks, and none after its last byte")
    func resumed() async throws {
        try await withOptionScene { origin, command in
            let digest = try await Self.sha256(command, origin.url("/96M/f.bin"))
            let arguments = ["-q", "-s", "3", "--checksum", "sha256=\(digest)", "-o", "f.bin"]
            // So slow that most of it is left when the command is interrupted.
            let slow = origin.plainURL("/96M/f.bin?rate=1M")
            // The origin may have sent more than the file already, in connections that were cut.
            let before = origin.log.snapshot().bytesSent
            let paused = try await command.run(arguments + [slow]) { process in
                await origin.log.waitForBytes(sent: before + (12 << 20))
                kill(process, SIGINT)
            }
            #expect(paused.status == 130, "\(paused)")
            let (status, lines) = try await Self.traced(
                command, arguments + [origin.plainURL("/96M/f.bin?rate=8M")],
                calls: "read,pread64,preadv,preadv2,pwrite64")
            #expect(status == 0 && command.holds("f.bin", 96 << 20))
            let part = lines.enumerated().filter { $0.element.contains("f.bin.segdl-part>") }
            let reads = part.filter { $0.element.contains("pread64(") }
            let lastWrite = try #require(part.last { $0.element.contains("pwrite64(") }?.offset)
            #expect(reads.allSatisfy { $0.offset < lastWrite })
            // The bytes after the first gap, less than a window; 1 MiB at a time.
            #expect(reads.count <= 64, "\(reads.count)")
        }
    }

    @Test("A short file costs eleven calls of its own, and none of them on a part, a lock or a manifest")
    func short() async throws {
        try await withOptionScene { origin, command in
            let count = 40
            let list = (0..<count).map { origin.url("/64K/f\($0)") }.joined(separator: "\n")
            try Data(list.utf8).write(to: URL(fileURLWithPath: command.path("list")))
            let (status, lines) = try await Self.traced(
                command, ["-q", "-d", "out", "-i", "list"], calls: "%file,%desc,flock,fsync,fdatasync")
            #expect(status == 0)
            // Interrupted calls are in two lines. The file is opened by the name of its directory.
            let calls = lines.filter {
                $0.contains("out/") && !$0.contains("resumed>") && !$0.contains("openat(")
            }
            #expect(calls.count <= 11 * count, "\(calls.prefix(20))")
            let changing = calls.filter { !$0.contains("newfstatat(") && !$0.contains("fstat(") }
            #expect(!changing.contains { $0.contains(".segdl-") || $0.contains(".segdl\",") && $0.contains("out/f") })
            #expect(!lines.contains { $0.contains("flock(") })
            // Once without a name, before it gets one.
            #expect(changing.count { $0.contains("fsync(") } == count)
            // The directory is opened once for each file, and for the syncs of its names, which files share.
            #expect(lines.count { $0.contains("access(") && $0.contains("\"out\"") } <= count + 5)
            #expect(lines.count { $0.contains("sync(") && $0.contains("/out>") } <= count)
        }
    }

    @Test("--fsync decides what is made durable", arguments: ["checkpoint", "end", "none"])
    func syncs(when: String) async throws {
        try await withOptionScene { origin, command in
            // Long enough for a manifest, which is made durable before anything else.
            let (status, lines) = try await Self.traced(
                command, ["-q", "--fsync", when, "-o", "f.bin", origin.url("/16M/f.bin")], calls: "fsync,fdatasync")
            #expect(status == 0 && command.holds("f.bin", 16 << 20))
            let syncs = lines.filter { $0.contains("sync(") }
            let ofPart = syncs.filter { $0.contains("f.bin.segdl-part>") }
            let ofManifest = syncs.filter { $0.contains("f.bin.segdl-new>") || $0.contains("f.bin.segdl>") }
            #expect(ofPart.isEmpty == (when == "none"), "\(syncs)")
            #expect(ofManifest.isEmpty == (when != "checkpoint"), "\(syncs)")
            #expect(syncs.isEmpty == (when == "none"), "\(syncs)")
        }
    }

    @Test("Bytes that were not made durable are resumed too, after they are read back", arguments: ["end", "none"])
    func resumedUnsynced(when: String) async throws {
        try await withOptionScene { origin, command in
            // Both connections are stuck before the signal comes.
            let url = origin.plainURL("/16M/f.bin?stall-after=2700000:all")
            let arguments = [
                "-q", "--json", "-s", "2", "--stall-timeout", "1h", "--fsync", when, "-o", "f.bin", url,
            ]
            for signal in [SIGKILL, SIGINT] {
                let sent = origin.log.snapshot().bytesSent + 5 << 20
                let outcome = try await command.run(arguments) { process in
                    await origin.log.waitForBytes(sent: sent)
                    await command.waitForBytes(writtenBy: process, 4 << 20)
                    kill(process, signal)
                }
                #expect(outcome.status != 0, "\(outcome)")
            }
            _ = origin.plainURL("/16M/f.bin")
            let last = try await command.run(arguments)
            #expect(last.status == 0 && command.holds("f.bin", 16 << 20), "\(last)")
            let fetched = try #require(last.event("completed")?["bytes_fetched"] as? Int)
            #expect(fetched < 16 << 20)
        }
    }
}
