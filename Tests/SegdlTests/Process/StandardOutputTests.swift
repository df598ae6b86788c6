import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// `-o -`: output in order while segments are fetched in parallel.
@Suite("Standard output")
struct StandardOutputTests {
    /// More than one window, so that the window must move.
    private static let size: Int64 = 72 << 20

    @Test(
        "The output is the file, for any reader and number of connections",
        arguments: ["> out", "| cat > out", ">> out", "| dd bs=512 of=out 2>dd"], ["1", "5", "16", "auto"])
    func identical(sink: String, segments: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                ["-q", "-s", segments, "-o", "-", origin.url("/72M/f.bin?latency=5ms")],
                shell: #"set -o pipefail; "$0" "$@" \#(sink)"#)
            #expect(outcome.status == 0, "\(outcome)")
            #expect(command.holds("out", Self.size))
            // No file is left.
            #expect(try command.names.filter { $0 != "out" && $0 != "dd" } == [])
            let ranges = origin.values(of: "range").filter { $0 != "bytes=0-" }
            #expect(segments == "1" || segments == "auto" || ranges.count > Int(segments) ?? 0, "\(ranges)")
        }
    }

    @Test("Each byte is written once and in order, although connections break")
    func broken() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/72M/f.bin?reset-after=3M:9&fail=503:3:4")
            let outcome = try await command.run(["-q", "-s", "6", "-o", "-", url], shell: #""$0" "$@" | cat > out"#)
            #expect(outcome.status == 0 && command.holds("out", Self.size), "\(outcome)")
        }
    }

    @Test(
        "Without ranges or without a length one stream is used",
        arguments: ["ranges=no", "length=chunked", "length=none", "ranges=first-only"])
    func oneStream(behaviour: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                ["-q", "-s", "1", "-o", "-", origin.url("/72M/f.bin?\(behaviour)")], shell: #""$0" "$@" | cat > out"#)
            #expect(outcome.status == 0 && command.holds("out", Self.size), "\(outcome)")
        }
    }

    @Test("A stream that breaks starts over from its beginning if its tag proves the file equal")
    func comesAgain() async throws {
        try await withOptionScene { origin, command in
            for behaviour in ["ranges=no&reset-after=20M:2", "ranges=first-only&reset-after=9M:1"] {
                let outcome = try await command.run(
                    ["-o", "-", origin.url("/72M/f.bin?\(behaviour)")], shell: #""$0" "$@" > out"#)
                #expect(outcome.status == 0 && command.holds("out", Self.size), "\(outcome)")
            }
        }
    }

    @Test("Bytes written to standard output cannot be retracted: without another way the run fails and reports it")
    func cannotGoOn() async throws {
        try await withOptionScene { origin, command in
            let cut = origin.url("/72M/f.bin?ranges=no&etag=none&last-modified=none&reset-after=20M:1")
            let outcome = try await command.run(["-o", "-", cut], shell: #""$0" "$@" > out"#)
            #expect(outcome.status == 3 && outcome.errors.contains("written to the output"), "\(outcome)")
            let changed = origin.url("/72M/f.bin?seed=3&change-after=2:4&reset-after=9M:2")
            let other = try await command.run(
                ["-s", "2", "--on-change", "restart", "-o", "-", changed], shell: #""$0" "$@" > out"#)
            #expect(other.status == 10, "\(other)")
            // The output is of one file only.
            let written = try Data(contentsOf: URL(fileURLWithPath: command.path("out")))
            #expect(written.elementsEqual(OriginContent(seed: 3).bytes(0..<Int64(written.count))))
        }
    }

    @Test("A digest of the output is checked", arguments: [true, false])
    func digest(isRight: Bool) async throws {
        try await withOptionScene { origin, command in
            _ = try await command.run("-q", "-o", "f.bin", origin.url("/72M/f.bin"))
            let sum = try await command.run([], shell: "sha256sum f.bin; rm f.bin").output.prefix(64)
            let wanted = isRight ? String(sum) : "00" + sum.dropFirst(2)
            let outcome = try await command.run(
                ["--checksum", "sha256=\(wanted)", "-o", "-", origin.url("/72M/f.bin")], shell: #""$0" "$@" > out"#)
            #expect(outcome.status == (isRight ? 0 : 9), "\(outcome)")
            #expect(outcome.errors.contains(isRight ? "verified by sha256" : "error[integrity]"), "\(outcome)")
        }
    }

    @Test(
        "A reader that closes the pipe ends segdl with SIGPIPE, without an error",
        arguments: Array(repeating: "72M", count: 3) + Array(repeating: "2M", count: 12))
    func readerLeaves(size: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                ["-o", "-", origin.url("/\(size)/f.bin")],
                shell: #""$0" "$@" | head -c 100000 | wc -c; exit ${PIPESTATUS[0]}"#)
            #expect(outcome.status == 141 && outcome.output == "100000\n", "\(outcome)")
            #expect(!outcome.errors.contains("error"), "\(outcome)")
        }
    }

    @Test("An unwritable standard output is reported", arguments: [(">&-", 3), ("> /dev/full", 13)])
    func noOutput(sink: String, status: Int32) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                ["-o", "-", origin.url("/2M/f.bin")], shell: #""$0" "$@" \#(sink)"#)
            #expect(outcome.status == status && outcome.errors.contains("segdl: error["), "\(outcome)")
        }
    }

    @Test("A blocked reader stops the download, and a signal still ends it")
    func readerSleeps() async throws {
        try await withOptionScene { origin, command in
            // The reader opens the pipe and reads only after the command has ended.
            let outcome = try await command.run(
                ["-s", "2", "-o", "-", origin.url("/300M/f.bin")],
                shell: """
                    mkfifo pipe; exec 3<>pipe
                    "$0" "$@" > pipe & echo $! > process; wait $!; exit $?
                    """
            ) { _ in
                // More than a pipe and the window hold.
                await origin.log.waitForBytes(sent: 48 << 20)
                let text = try? String(contentsOfFile: command.path("process"), encoding: .utf8)
                if let process = text.flatMap({ Int32($0.trimmingCharacters(in: .whitespacesAndNewlines)) }) {
                    kill(process, SIGINT)
                }
            }
            #expect(outcome.status == 130 && outcome.errors.contains("segdl: paused: -, "), "\(outcome)")
            #expect(outcome.errors.contains("Nothing was kept"), "\(outcome)")
            // It fetched no more than the window and the data in flight.
            #expect(origin.log.snapshot().bytesSent < 120 << 20)
        }
    }

    @Test("A source that does not answer is replaced before the first byte")
    func mirror() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                [
                    "-q", "--retry", "1", "-o", "-", origin.url("/2M/f.bin?fail=503:all"), "--mirror",
                    origin.url("/2M/g.bin"),
                ], shell: #""$0" "$@" > out"#)
            #expect(outcome.status == 0 && command.holds("out", 2 << 20), "\(outcome)")
        }
    }

    @Test(
        "Contradicting arguments are refused before any request",
        arguments: [["--json", "U"], ["-c", "must", "U"], ["U", "U"]])
    func refused(arguments: [String]) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/1M/f.bin")
            let outcome = try await command.run(["-o", "-"] + arguments.map { $0 == "U" ? url : $0 })
            #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome)")
            #expect(origin.log.snapshot().requests.isEmpty)
        }
    }
}
