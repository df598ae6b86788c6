import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// `--range`: a part of a file, fetched in segments.
@Suite("Options: range")
struct RangeOptionTests {
    /// Runs `body` with a file that was fetched whole.
    private static func withWhole(_ body: (Origin, Segdl, Data) async throws -> Void) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("-q", "-o", "whole", origin.plainURL("/9M/f.bin"))
            #expect(outcome.status == 0, "\(outcome)")
            let whole = try #require(FileManager.default.contents(atPath: command.path("whole")))
            try await body(origin, command, whole)
        }
    }

    @Test(
        "The part is saved, for any number of connections",
        arguments: [("0-0", 0..<1), ("1048577-8000000", 1_048_577..<8_000_001), ("9000000-", 9_000_000..<9_437_184)],
        ["1", "3", "auto"])
    func parts(part: (text: String, range: Range<Int>), segments: String) async throws {
        try await Self.withWhole { origin, command, whole in
            for (name, option) in [("long", ["--range", part.text]), ("short", ["-r", part.text])] {
                let url = origin.plainURL("/9M/f.bin?reset-after=1M:2")
                let outcome = try await command.run(["-o", name, "-s", segments] + option + [url])
                #expect(outcome.status == 0, "\(outcome)")
                let saved = FileManager.default.contents(atPath: command.path(name))
                #expect(saved == whole[part.range], "\(outcome)")
            }
        }
    }

    @Test("A part that ends behind the file is shorter, and one that begins there is an error")
    func beyond() async throws {
        try await Self.withWhole { origin, command, whole in
            let url = origin.plainURL("/9M/f.bin")
            var outcome = try await command.run("-o", "end", "--range", "9437183-99999999999", url)
            #expect(outcome.status == 0 && FileManager.default.contents(atPath: command.path("end")) == whole.suffix(1))
            outcome = try await command.run("-o", "none", "--range", "9437184-", url)
            #expect(outcome.status == 7 && outcome.errors.contains("it has 9437184 bytes"), "\(outcome)")
            outcome = try await command.run("-o", "none", "--range", "0-", origin.plainURL("/0/f.bin"))
            #expect(outcome.status == 7, "\(outcome)")
            #expect(try !command.names.contains("none"))
        }
    }

    @Test(
        "Without support of ranges nothing is saved", arguments: ["ranges=no", "ranges=first-only"])
    func wholeOnly(behaviour: String) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin?\(behaviour)")
            let outcome = try await command.run("-o", "f", "-s", "3", "--range", "100-9000000", url)
            #expect(outcome.status != 0, "\(outcome)")
            #expect(try !command.names.contains("f"))
        }
    }

    @Test("An interrupted part is resumed without its range, and never as the whole file or another part")
    func resumes() async throws {
        try await Self.withWhole { origin, command, whole in
            for others in [["resume"], ["--range", "1000001-8000001"], []] {
                // The same URL: first with a server that stalls.
                let slow = origin.plainURL("/9M/f.bin?stall-after=2M:all")
                let interrupted = try await command.run(
                    ["-o", "f", "-s", "1", "--range", "1000000-8000000", slow], signal: SIGINT, afterWriting: 3 << 19)
                #expect(try command.names.contains("f.segdl-part"), "\(interrupted)")
                let url = origin.plainURL("/9M/f.bin")
                let arguments = others == ["resume"] ? ["resume", "f"] : ["-o", "f"] + others + [url]
                let outcome = try await command.run(arguments)
                #expect(outcome.status == 0, "\(outcome)")
                let range =
                    others.isEmpty
                    ? 0..<whole.count : others == ["resume"] ? 1_000_000..<8_000_001 : 1_000_001..<8_000_002
                #expect(FileManager.default.contents(atPath: command.path("f")) == whole[range], "\(others) \(outcome)")
                try FileManager.default.removeItem(atPath: command.path("f"))
            }
        }
    }

    @Test("A finished part is complete for the same range, and is replaced for another one")
    func finished() async throws {
        try await Self.withWhole { origin, command, whole in
            let url = origin.plainURL("/9M/f.bin")
            for (range, first, isFetched) in [("0-999", 0, true), ("0-999", 0, false), ("1000-1999", 1000, true)] {
                let before = origin.log.snapshot().bytesSent
                let outcome = try await command.run("-o", "f", "--range", range, url)
                #expect(outcome.status == 0, "\(outcome)")
                #expect(FileManager.default.contents(atPath: command.path("f")) == whole[first..<(first + 1000)])
                #expect((origin.log.snapshot().bytesSent - before >= 1000) == isFetched)
            }
        }
    }

    @Test("A digest of the whole file that the server states is not that of the part; a given one is")
    func digests() async throws {
        try await Self.withWhole { origin, command, whole in
            // The SHA-256 of nothing.
            let stated = "field=Repr-Digest:sha-256%3D%3A47DEQpj8HBSa%2B%2FTImW%2B5JCeuQeRkm5NMpJWZG3hSuFU%3D%3A"
            let url = origin.url("/9M/f.bin?\(stated)")
            var outcome = try await command.run("-o", "f", "--range", "5-9", url)
            #expect(outcome.status == 0 && FileManager.default.contents(atPath: command.path("f")) == whole[5..<10])
            outcome = try await command.run(
                "-o", "g", "--checksum", "md5=d41d8cd98f00b204e9800998ecf8427e", "--range", "5-9", url)
            #expect(outcome.status == 9, "\(outcome)")
            #expect(try !command.names.contains("g"))
        }
    }

    @Test(
        "Other texts are refused",
        arguments: ["-500", "5-4", "a-b", "1", "", "0-9223372036854775807", "+1-2", "1-2,4-5"])
    func malformed(text: String) async throws {
        try await withCommand { command in
            let outcome = try await command.run("--range=\(text)", "http://localhost/")
            #expect(outcome.status == 2 && outcome.errors.contains("A-B"), "\(outcome)")
        }
    }
}
