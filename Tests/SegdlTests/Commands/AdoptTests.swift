import Foundation
import Origin
import Testing

/// `segdl adopt` for partial files that the tests make.
@Suite("Adopting")
struct AdoptTests {
    static let length = 32 << 20
    static let content = OriginContent(seed: 1).bytes(0..<Int64(Self.length))
    /// What the other program has fetched.
    static let found = 20 << 20

    /// The names in the directory of a command, except those that the tests create.
    static func names(_ command: Segdl) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: command.directory).filter { !$0.hasPrefix(".") }.sorted()
    }

    static func hasOnly(_ names: [String], _ command: Segdl) -> Bool { (try? Self.names(command)) == names }

    static func write(_ bytes: some Sequence<UInt8>, to name: String, _ command: Segdl) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: command.path(name)))
    }

    private static func run(_ body: (Origin, Segdl) async throws -> Void) async throws {
        try await withOrigin { origin in
            try await withCommand { command in try await body(origin, command) }
        }
    }

    /// The number of bytes of an `adopted` event.
    private static func number(_ key: String, _ outcome: Segdl.Outcome) -> Int {
        (outcome.event("adopted")?[key] as? NSNumber)?.intValue ?? -1
    }

    @Test("What is there is not fetched again, and at most 2 % of it for the comparison", arguments: [1, 8])
    func prefix(segments: Int) async throws {
        try await Self.run { origin, command in
            try Self.write(Self.content[..<Self.found], to: "f.iso", command)
            let outcome = try await command.run("adopt", "--json", "-s", "\(segments)", "f.iso", origin.url("/32M/x"))
            #expect(outcome.status == 0 && command.holds("f.iso", Self.content), "\(outcome)")
            #expect(outcome.event("completed")?["verified_by"] as? String == "comparison")
            #expect(Self.number("bytes_found", outcome) == Self.found)
            #expect(Self.number("bytes_kept", outcome) == Self.found)
            #expect(outcome.resumedFrom == Self.found)
            #expect(try Self.names(command) == ["f.iso"])
            // With one connection no byte arrives twice.
            let sent = origin.log.snapshot().bytesSent
            #expect(segments > 1 || sent <= Int64(Self.length - Self.found + Self.found / 50), "\(sent)")
        }
    }

    /// Ways in which a partial file may be damaged.
    enum Damage: String, CaseIterable {
        case middle, zeroPages, errorPage, beginning, tornPage, reserved

        func apply(to bytes: inout [UInt8]) {
            switch self {
            case .middle: for index in 5 << 20..<6 << 20 { bytes[index] ^= 0x55 }
            case .zeroPages: for page in [0, 77, 1234, 5119] { bytes.zero(page * 4096, 4096) }
            case .errorPage: bytes += Array(repeatElement(Array("<html>no</html>".utf8), count: 100).joined())
            case .beginning: bytes.zero(0, 1000)
            case .tornPage: bytes.zero((2 << 20) + 1000, 3096)
            // As long as the complete file, and without a control file.
            case .reserved: bytes += [UInt8](repeating: 0, count: AdoptTests.length - bytes.count)
            }
        }
    }

    @Test("A damaged file becomes the right one, and most of what is right is kept", arguments: Damage.allCases)
    func damaged(_ damage: Damage) async throws {
        try await Self.run { origin, command in
            var bytes = Array(Self.content[..<Self.found])
            damage.apply(to: &bytes)
            try Self.write(bytes, to: "f.iso", command)
            let outcome = try await command.run("adopt", "--json", "f.iso", origin.url("/32M/x"))
            #expect(outcome.status == 0 && command.holds("f.iso", Self.content), "\(outcome)")
            #expect(Self.number("places_differing", outcome) > 0, "\(outcome)")
            let kept = Self.number("bytes_kept", outcome)
            #expect((Self.found - (2 << 20)...Self.found).contains(kept), "\(outcome)")
        }
    }

    @Test("Another file is refused and stays as it is", arguments: ["other", "longer", "second half", "version"])
    func foreign(_ kind: String) async throws {
        try await Self.run { origin, command in
            let bytes: [UInt8] =
                switch kind {
                case "other": OriginContent(seed: 2).bytes(0..<Int64(Self.found))
                case "longer": Self.content + [0]
                case "second half": Array(Self.content[1..<Self.found])
                default: Self.content[..<(14 << 20)] + OriginContent(seed: 3).bytes(0..<Int64(6 << 20))
                }
            try Self.write(bytes, to: "f.iso", command)
            for options in [[], ["--checksum", "crc32=00000000"]] {
                let outcome = try await command.run(["adopt", "--json"] + options + ["f.iso", origin.url("/32M/x")])
                #expect(outcome.status == 12, "\(outcome)")
                #expect(command.holds("f.iso", bytes) && Self.hasOnly(["f.iso"], command))
            }
        }
    }

    @Test("Holes are missing bytes, whether or not pages were written in part")
    func holes() async throws {
        try await Self.run { origin, command in
            try Self.write([], to: "f.iso", command)
            let handle = try #require(FileHandle(forUpdatingAtPath: command.path("f.iso")))
            for range in [0..<3_000_001, 10_000_003..<17_000_000, 30_000_000..<31_000_000] {
                try handle.seek(toOffset: UInt64(range.lowerBound))
                try handle.write(contentsOf: Self.content[range])
            }
            try handle.truncate(atOffset: UInt64(Self.length))
            try handle.close()
            let outcome = try await command.run("adopt", "--json", "f.iso", origin.url("/32M/x"))
            #expect(outcome.status == 0 && command.holds("f.iso", Self.content), "\(outcome)")
            #expect(Self.number("places_differing", outcome) == 0, "\(outcome)")
            let there = 3_000_001 + 6_999_997 + 1_000_000
            #expect((there - 100...there).contains(Self.number("bytes_kept", outcome)), "\(outcome)")
        }
    }

    @Test("A complete file is proven and fetched no further")
    func complete() async throws {
        try await Self.run { origin, command in
            try Self.write(Self.content, to: "f.iso.part", command)
            let outcome = try await command.run("adopt", "--json", "f.iso.part", origin.url("/32M/x"))
            #expect(outcome.status == 0 && command.holds("f.iso", Self.content), "\(outcome)")
            #expect(outcome.bytesFetched ?? .max <= 1 && Self.hasOnly(["f.iso"], command), "\(outcome)")
        }
    }

    @Test("With a digest one wrong bit is found, and the adopted bytes are fetched again")
    func digest() async throws {
        try await Self.run { origin, command in
            var bytes = Array(Self.content[..<Self.found])
            bytes[12_345_678] ^= 1
            try Self.write(bytes, to: "f.iso", command)
            try Self.write(Self.content, to: "whole", command)
            let sum = try await command.run([], shell: "sha256sum whole").output.prefix(64)
            let arguments = ["adopt", "--json", "--checksum", "sha256=\(sum)", "f.iso", origin.url("/32M/x")]
            let outcome = try await command.run(arguments)
            #expect(outcome.status == 0 && command.holds("f.iso", Self.content), "\(outcome)")
            #expect(outcome.event("completed")?["verified_by"] as? String == "digest")

            try Self.write(Self.content[..<Self.found], to: "g.iso", command)
            let zeros = "sha256=" + String(repeating: "0", count: 64)
            let wrong = try await command.run("adopt", "-q", "--checksum", zeros, "g.iso", origin.url("/32M/x"))
            #expect(wrong.status == 9 && !command.exists("g.iso") && command.exists("g.iso.segdl-part"), "\(wrong)")
        }
    }

    @Test(
        "A server that cannot be compared with is refused, and the file stays as it is",
        arguments: [
            ("/32M/x?ranges=no", 7), ("/32M/x?ranges=no&length=chunked", 7), ("/32M/x?encoding=gzip", 7),
            ("/32M/x?fail=all:404", 8),
        ] as [(String, Int32)])
    func server(path: String, status: Int32) async throws {
        try await Self.run { origin, command in
            let bytes = Self.content[..<100_000]
            try Self.write(bytes, to: "f.iso", command)
            let outcome = try await command.run("adopt", "-q", "--retry", "0", "f.iso", origin.url(path))
            #expect(outcome.status == status, "\(outcome)")
            #expect(command.holds("f.iso", Array(bytes)) && Self.hasOnly(["f.iso"], command))
        }
    }

    @Test("A file in use, a part of segdl, a directory and a missing file are refused")
    func unusable() async throws {
        try await Self.run { origin, command in
            let url = origin.url("/32M/x")
            try Self.write(Self.content[..<1000], to: "f.iso", command)
            let handle = try #require(FileHandle(forReadingAtPath: command.path("f.iso")))
            let busy = try await command.run("adopt", "f.iso", url)
            #expect(busy.status == 12 && busy.errors.contains("another process has f.iso open"), "\(busy)")
            try handle.close()
            try Self.write([1], to: "g.segdl-part", command)
            let own = try await command.run("adopt", "g.segdl-part", url)
            #expect(own.status == 12 && own.errors.contains("segdl resume"), "\(own)")
            #expect(try await command.run("adopt", ".", url).status == 12)
            #expect(try await command.run("adopt", "none", url).status == 3)
            #expect(try await command.run("adopt", "f.iso").status == 2)
            try Self.write([1], to: "f.iso.aria2", command)
            let damaged = try await command.run("adopt", "f.iso", url)
            #expect(damaged.status == 9 && damaged.errors.contains("Move it away"), "\(damaged)")
        }
    }

    @Test("The complete file is named without a browser's suffix, in place of its empty file, or with -o")
    func names() async throws {
        try await Self.run { origin, command in
            let url = origin.url("/32M/x")
            try Self.write(Self.content[..<1_000_000], to: "f.iso.part", command)
            try Self.write([], to: "f.iso", command)
            #expect(try await command.run("adopt", "-q", "f.iso.part", url).status == 0)
            try Self.write(Self.content[..<1_000_000], to: "Unconfirmed 1.crdownload", command)
            #expect(try await command.run("adopt", "-q", "-o", "g.iso", "Unconfirmed 1.crdownload", url).status == 0)
            #expect(try Self.names(command) == ["f.iso", "g.iso"])
            try Self.write(Self.content[..<1_000_000], to: "g.iso.part", command)
            let taken = try await command.run("adopt", "-q", "g.iso.part", url)
            #expect(taken.status == 12 && taken.errors.contains("g.iso exists already"), "\(taken)")
            #expect(try Self.names(command) == ["f.iso", "g.iso", "g.iso.part"])
        }
    }

    @Test("--dry-run changes nothing")
    func dryRun() async throws {
        try await Self.run { origin, command in
            try Self.write(Self.content[..<1_000_000], to: "f.iso", command)
            let outcome = try await command.run("adopt", "--dry-run", "--json", "f.iso", origin.url("/32M/x"))
            #expect(outcome.status == 0 && Self.number("bytes_kept", outcome) == 1_000_000, "\(outcome)")
            #expect(command.holds("f.iso", Array(Self.content[..<1_000_000])) && Self.hasOnly(["f.iso"], command))
        }
    }

    private static func sum(_ command: Segdl) async throws -> String {
        try Self.write(Self.content, to: ".whole", command)
        return "sha256=" + (try await command.run([], shell: "sha256sum .whole").output.prefix(64))
    }

    private static let wrongSum = "sha256=" + String(repeating: "0", count: 64)

    @Test("-c with a wrong digest leaves the file as it was, with all edits, and with the right one replaces it")
    func continuingEdited() async throws {
        try await Self.run { origin, command in
            let url = origin.url("/32M/x")
            var bytes = Array(Self.content[..<Self.found])
            for index in 5 << 20..<(5 << 20) + 100_000 { bytes[index] ^= 0x55 }
            try Self.write(bytes, to: "f.iso", command)
            let wrong = try await command.run("-c", "--json", "--checksum", Self.wrongSum, "-o", "f.iso", url)
            #expect(wrong.status == 9 && command.holds("f.iso", bytes), "\(wrong)")
            // The part that is left is resumed.
            let sum = try await Self.sum(command)
            let right = try await command.run("-c", "--json", "--checksum", sum, "-o", "f.iso", url)
            #expect(right.status == 0 && command.holds("f.iso", Self.content), "\(right)")
            #expect(try Self.names(command) == ["f.iso"])
        }
    }

    @Test("-c with a digest refuses a file as long as the server's that does not have it")
    func continuingComplete() async throws {
        try await Self.run { origin, command in
            let url = origin.url("/32M/x")
            var bytes = Array(Self.content)
            bytes[7] ^= 1
            try Self.write(bytes, to: "f.iso", command)
            let outcome = try await command.run("-c", "--checksum", try await Self.sum(command), "-o", "f.iso", url)
            #expect(outcome.status == 12 && command.holds("f.iso", bytes), "\(outcome)")
            #expect(outcome.errors.contains("segdl verify --repair FILE URL"), "\(outcome)")
            #expect(outcome.errors.contains("segdl adopt FILE URL"), "\(outcome)")
        }
    }

    @Test(
        "-c with a digest that is killed leaves the file, and the same command or resume completes it",
        arguments: [true, false])
    func continuingKilled(isResumed: Bool) async throws {
        try await Self.run { origin, command in
            let bytes = Array(Self.content[..<Self.found])
            try Self.write(bytes, to: "f.iso", command)
            let sum = try await Self.sum(command)
            let url = origin.plainURL("/32M/x")
            let slow = ["-c", "--checksum", sum, "-s", "1", "--limit-rate", "2M", "-o", "f.iso", url]
            let killed = try await command.run(slow, signal: SIGKILL, afterWriting: Self.found + (1 << 20))
            #expect(killed.status == -SIGKILL && command.holds("f.iso", bytes), "\(killed)")
            if !isResumed { try Self.write(Self.controlFile, to: "f.iso.aria2", command) }
            let next = try await command.run(
                isResumed
                    ? ["resume", "--json", "-s", "1", "f.iso"]
                    : ["-c", "--json", "-s", "1", "--checksum", sum, "-o", "f.iso", url])
            #expect(next.status == 0 && command.holds("f.iso", Self.content), "\(next)")
            #expect(next.bytesFetched ?? .max <= Self.length - Self.found + (1 << 20), "\(next)")
            #expect(try Self.names(command) == ["f.iso"])
        }
    }

    @Test(
        "-c with a digest copies anew what a killed run began to copy, and leaves a complete file with a control file")
    func continuingAgain() async throws {
        try await Self.run { origin, command in
            let (url, sum) = (origin.url("/32M/x"), try await Self.sum(command))
            try Self.write(Self.content[..<Self.found], to: "f.iso", command)
            try Self.write([UInt8](repeating: 9, count: 100_000), to: "f.iso.segdl-part", command)
            let arguments = ["-c", "--json", "--checksum", sum, "-o", "f.iso", url]
            let outcome = try await command.run(arguments)
            #expect(outcome.status == 0 && command.holds("f.iso", Self.content), "\(outcome)")
            try command.write("not of aria2", to: "f.iso.aria2")
            let again = try await command.run(arguments)
            #expect(again.status == 0 && again.event("adopted") == nil, "\(again)")
            #expect(try Self.names(command) == ["f.iso", "f.iso.aria2"])
        }
    }

    @Test("In a list, a file that cannot be continued fails alone, and control files of complete files are removed")
    func continuingMany() async throws {
        try await Self.run { origin, command in
            let url = origin.url("/32M/x")
            let sum = try await Self.sum(command)
            try Self.write(Self.content[..<Self.found], to: "good.iso", command)
            try Self.write(Self.content[..<Self.found], to: "bad.iso", command)
            try Self.write(Self.controlFile, to: "good.iso.aria2", command)
            try command.write("damaged", to: "bad.iso.aria2")
            try command.write(
                "\(url)\n out=bad.iso\n checksum=\(sum)\n\(url)\n out=good.iso\n checksum=\(sum)\n", to: ".list")
            let outcome = try await command.run("-c", "--json", "-i", ".list")
            #expect(outcome.status == 16 && command.holds("good.iso", Self.content), "\(outcome)")
            #expect(command.holds("bad.iso", Array(Self.content[..<Self.found])))
            #expect(try Self.names(command) == ["bad.iso", "bad.iso.aria2", "good.iso"])
            #expect(outcome.event("failed")?["path"] as? String == "bad.iso", "\(outcome)")
        }
    }

    /// A control file of aria2 which states that nothing of the content is there.
    private static let controlFile: [UInt8] = {
        let head: [UInt8] = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
        let lengths = Self.bigEndian(1 << 20, 4) + Self.bigEndian(Self.length, 8) + Self.bigEndian(0, 8)
        return head + lengths + Self.bigEndian(4, 4) + Self.bigEndian(0, 4) + Self.bigEndian(0, 4)
    }()

    private static func bigEndian(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    @Test("-c continues an existing file if a digest is given, and otherwise names segdl adopt")
    func continuing() async throws {
        try await Self.run { origin, command in
            let url = origin.url("/32M/x")
            try Self.write(Self.content[..<Self.found], to: "f.iso", command)
            let refused = try await command.run("-c", "-o", "f.iso", url)
            #expect(refused.status == 12 && refused.errors.contains("segdl adopt FILE URL"), "\(refused)")
            #expect(command.holds("f.iso", Array(Self.content[..<Self.found])))
            try Self.write(Self.content, to: "whole", command)
            let sum = try await command.run([], shell: "sha256sum whole").output.prefix(64)
            let digest = ["--checksum", "sha256=\(sum)"]
            let outcome = try await command.run(["--json", "-c", "-s", "1"] + digest + ["-o", "f.iso", url])
            #expect(outcome.status == 0 && command.holds("f.iso", Self.content), "\(outcome)")
            #expect(outcome.bytesFetched == Self.length - Self.found)
            // A complete file is none to adopt.
            let again = try await command.run(["--json", "-c"] + digest + ["-o", "f.iso", url])
            #expect(again.status == 0 && again.event("adopted") == nil, "\(again)")
        }
    }
}

extension [UInt8] {
    fileprivate mutating func zero(_ offset: Int, _ count: Int) {
        for index in offset..<offset + count { self[index] = 0 }
    }
}
