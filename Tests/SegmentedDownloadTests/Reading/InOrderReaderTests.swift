import Glibc
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Digests that are computed while a part is written, from memory where its bytes still are.
@Suite("Reading a part in order")
struct InOrderReaderTests {
    private static let windowLength: Int64 = 64 << 10

    private static func reader(
        _ subject: WatchedPart, algorithms: [ExpectedDigest.Algorithm] = [.sha256], states: [DigestState] = [],
        claims: [Range<Int64>] = [], length: Int64 = 32 << 10
    ) -> InOrderReader? {
        InOrderReader(
            subject.part.file, id: 1, algorithms: algorithms, states: states, claims: claims,
            windowLength: Self.windowLength, length: length)
    }

    private static func digest(_ algorithm: ExpectedDigest.Algorithm, of range: Range<Int64>) -> RunningDigest {
        var digest = RunningDigest(algorithm)
        WatchedPart.bytes(range).withUnsafeBytes { digest.update($0) }
        return digest
    }

    @Test("A file is read along if it has digests and is no short one, and has little behind that was not read")
    func isWorthIt() async throws {
        try await WatchedPart.run { subject in
            #expect(Self.reader(subject, algorithms: []) == nil)
            #expect(Self.reader(subject, length: Self.windowLength / 8) == nil)
            #expect(Self.reader(subject, length: Self.windowLength / 8 + 1) != nil)
            let arrears = 4 * Self.windowLength
            #expect(Self.reader(subject, claims: [0..<arrears], length: 1 << 20) != nil)
            #expect(Self.reader(subject, claims: [0..<arrears + 1], length: 1 << 20) == nil)
            // What was written further on is none of it.
            #expect(Self.reader(subject, claims: [1..<1 << 20], length: 1 << 20) != nil)
        }
    }

    @Test("Reading goes on where all digests had come, if they had come to one place before the first gap")
    func goesOn() async throws {
        let state = { (algorithm: ExpectedDigest.Algorithm, offset: Int64) in
            try #require(Self.digest(algorithm, of: 0..<offset).saved(at: offset))
        }
        let states = [try state(.sha256, 1280), try state(.md5, 1280), try state(.sha1, 2560)]
        try await WatchedPart.run { subject in
            for (algorithms, frontier, position) in [
                ([.sha256], 1280, 1280), ([.sha256, .md5], 5000, 1280), ([.sha256], 1279, 0),
                ([.sha256, .sha1], 5000, 0),
                ([.sha256, .sha512], 5000, 0), ([.sha1], 5000, 2560),
            ] as [([ExpectedDigest.Algorithm], Int64, Int64)] {
                let reader = Self.reader(subject, algorithms: algorithms, states: states, claims: [0..<frontier])
                #expect(reader?.window.position == position)
                #expect(reader?.window.isStream == false && reader?.window.length == Self.windowLength)
            }
        }
    }

    /// Runs `body` with a reader at a part of 32 KiB that reads all the while.
    private static func reading(_ body: (WatchedPart, InOrderReader) async throws -> Void) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(32 << 10)
            let reader = try #require(Self.reader(subject))
            subject.part.read { _, _ in reader }
            try await withThrowingTaskGroup { group in
                group.addTask { try await reader.run { _ in } }
                try await body(subject, reader)
                reader.close()
                try await group.waitForAll()
            }
        }
    }

    @Test("Bytes still in memory are not read from the disk again, in any order of arrival")
    func fromMemory() async throws {
        try await Self.reading { subject, reader in
            subject.disk.fail("read " + WatchedPart.partName, .other)
            try subject.fill(16 << 10..<32 << 10, 0..<8 << 10, 8 << 10..<16 << 10)
            let digests = try await reader.finish(length: 32 << 10, unless: Latch())
            #expect(digests == [.sha256: Self.digest(.sha256, of: 0..<32 << 10).hex])
            #expect(reader.states.map(\.offset) == [32 << 10])
        }
    }

    @Test("A part whose bytes cannot be read back has no digests from here; they are computed at the end")
    func unreadable() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(32 << 10)
            try subject.fill(0..<32 << 10)
            let reader = try #require(Self.reader(subject, claims: [0..<32 << 10]))
            subject.disk.fail("read " + WatchedPart.partName, .other)
            try await reader.run { _ in }
            #expect(try await reader.finish(length: 32 << 10, unless: Latch()).isEmpty)
            #expect(reader.isSpoiled && reader.states.isEmpty)
        }
    }

    @Test("Bytes that are withdrawn after they were read spoil the digests, and others do not")
    func withdrawn() async throws {
        for (range, isSpoiled) in [(0..<1, true), (8 << 10..<16 << 10, false)] as [(Range<Int64>, Bool)] {
            try await Self.reading { subject, reader in
                try subject.fill(0..<8 << 10)
                while reader.states.first?.offset != 8 << 10 { await Task.yield() }
                reader.withdraw([range])
                #expect(reader.isSpoiled == isSpoiled)
                try subject.fill(8 << 10..<32 << 10)
                let digests = try await reader.finish(length: 32 << 10, unless: Latch())
                #expect(digests.isEmpty == isSpoiled)
            }
        }
    }

    @Test("A reader that is closed with its part resumes all waiting calls")
    func closed() async throws {
        try await Self.reading { subject, reader in
            try subject.fill(0..<8 << 10)
            subject.part.close()
            #expect(
                await failureCode { try await reader.finish(length: 32 << 10, unless: Latch()) } == .cancelled)
        }
    }

    @Test("A reader that is closed while its output accepts nothing ends without a failure of its own")
    func closedWhileWriting() async throws {
        try await WatchedPart.run { subject in
            var ends: [CInt] = [-1, -1]
            let isOpen = pipe(&ends) == 0
            try #require(isOpen)
            defer { for end in ends { close(end) } }
            // 2 MiB: more than a pipe holds.
            let length: Int64 = 2 << 20
            let output = OutputDescriptor(ends[1], clock: SystemClock())
            let reader = InOrderReader(
                to: output, subject.part.file, id: 1, algorithms: [], windowLength: length, length: length)
            [UInt8](repeating: 1, count: Int(length)).withUnsafeBytes { reader.put($0, at: 0) }
            reader.show(0..<length)
            try await withThrowingTaskGroup { group in
                group.addTask { try await reader.run { _ in } }
                while !output.hasWritten { await Task.yield() }
                reader.close()
                try await group.waitForAll()
            }
            #expect(reader.isSpoiled, "the write was not interrupted")
        }
    }

    @Test("An interruption ends the wait for the rest")
    func interrupted() async throws {
        try await Self.reading { subject, reader in
            try subject.fill(0..<8 << 10)
            let interruption = Latch()
            async let code = failureCode { try await reader.finish(length: 32 << 10, unless: interruption) }
            await Task.yield()
            interruption.raise()
            reader.wake()
            #expect(await code == .cancelled)
        }
    }
}
