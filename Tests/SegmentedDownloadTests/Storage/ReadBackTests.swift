import Foundation
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Bytes of an earlier run that the survey accepts unread are read before the file gets its name.
@Suite("Reading back an earlier run's bytes")
struct ReadBackTests {
    /// Three blocks, so that they are three claims.
    private static let length = 3 * BlockLayout.blockLength
    private static let blocks = (0..<Int64(3)).map {
        $0 * BlockLayout.blockLength..<($0 + 1) * BlockLayout.blockLength
    }

    /// Runs `body` with a part that was paused with the given blocks, then surveyed; its bytes at `damage` were changed in
    /// between, but not the file's times.
    private static func resumed(
        blocks: [Range<Int64>] = Self.blocks, damage: [Int64] = [],
        _ body: (WatchedPart, PartialFile) async throws -> Void
    ) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(Self.length)
            for block in blocks { try subject.fill(block) }
            _ = try await subject.part.checkpoint(isPause: true)
            let status = try subject.part.file.status()
            subject.part.close()
            for offset in damage { try Self.flip(subject.paths.part, at: offset, restoring: status.modified) }
            let part = try #require(try subject.survey().part)
            defer { part.close() }
            try await body(subject, part)
        }
    }

    private static func flip(_ path: String, at offset: Int64, restoring modified: Int64? = nil) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64(offset))
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: Data([byte ^ 1]))
        try file.close()
        guard let modified else { return }
        let time = timespec(tv_sec: Int(modified / 1_000_000_000), tv_nsec: Int(modified % 1_000_000_000))
        _ = utimensat(AT_FDCWD, path, [time, time], 0)
    }

    private static func finisher(_ subject: WatchedPart, _ part: PartialFile) -> Finisher {
        Finisher(
            storage: subject.disk, part: part, resource: WatchedPart.resource(Self.length), digests: [],
            replaces: false, keepsRemoteTime: false)
    }

    @Test("A part that is as it was written is placed")
    func intact() async throws {
        try await Self.resumed { subject, part in
            _ = try await Self.finisher(subject, part).finish(length: Self.length, unless: Latch())
            #expect(try subject.contents(of: subject.paths.destination) == WatchedPart.bytes(0..<Self.length))
            #expect(subject.disk.openNames.isEmpty)
        }
    }

    @Test(
        "Damaged bytes are withdrawn instead of placed, and the next survey finds them missing",
        arguments: [false, true])
    func damaged(isReadAlong: Bool) async throws {
        try await Self.resumed(damage: [5, Self.length - 1]) { subject, part in
            if isReadAlong { await part.readBackAlong() }
            let failure = await #expect(throws: DownloadError.self) {
                try await Self.finisher(subject, part).finish(length: Self.length, unless: Latch())
            }
            #expect(failure?.code == .integrity && failure?.isTransient == true)
            #expect(!subject.exists(subject.paths.destination))
            part.close()
            let finding = try subject.survey()
            defer { finding.part?.close() }
            guard case .partial(let saved) = finding.survey else {
                Issue.record("the part was not found")
                return
            }
            #expect(saved.missing == [Self.blocks[0], Self.blocks[2]])
            // Everything else was read by this survey, because the manifest does not end with a pause.
            #expect(finding.part?.readBack == nil)
        }
    }

    @Test("Damage that is found while others are fetched has the next run read everything, if this one is paused")
    func paused() async throws {
        for damage in [[], [5]] as [[Int64]] {
            try await Self.resumed(blocks: [Self.blocks[0]], damage: damage) { subject, part in
                try await part.adopt(
                    id: 9, resource: WatchedPart.resource(Self.length), limit: nil, sources: [], digests: [])
                await part.readBackAlong()
                _ = try await part.checkpoint(isPause: true)
                part.close()
                let finding = try subject.survey()
                defer { finding.part?.close() }
                #expect(finding.part?.claimedLength == (damage.isEmpty ? BlockLayout.blockLength : 0))
            }
        }
    }

    @Test("Claims that were withdrawn meanwhile do not count, nor do bytes that were fetched again")
    func withdrawn() async throws {
        try await Self.resumed(damage: [5]) { subject, part in
            await part.readBackAlong()
            #expect(try part.damagedClaims(unless: Latch()) == [WatchedPart.claim(Self.blocks[0])])
            try part.forget(from: 0)
            #expect(try part.damagedClaims(unless: Latch()).isEmpty)
            // The same bytes again, so the same claim.
            WatchedPart.bytes(Self.blocks[0]).withUnsafeBytes { try? part.write($0, at: 0) }
            try part.claim(WatchedPart.claim(Self.blocks[0]))
            #expect(try part.damagedClaims(unless: Latch()).isEmpty)
        }
    }

    @Test("A part that is begun anew is not read back")
    func begunAnew() async throws {
        try await Self.resumed(damage: [5]) { subject, part in
            try await part.begin(
                WatchedPart.resource(Self.length), id: 9, sources: [], digests: [], allocates: false)
            subject.disk.fail("read " + WatchedPart.partName, .other)
            await part.readBackAlong()
            #expect(try part.damagedClaims(unless: Latch()).isEmpty)
        }
    }

    @Test("Reading can be interrupted, and an error of the disk fails the download, not its bytes")
    func ended() async throws {
        try await Self.resumed { subject, part in
            let latch = Latch()
            latch.raise()
            #expect(await failureCode { try part.damagedClaims(unless: latch) } == .cancelled)
            subject.disk.fail("read " + WatchedPart.partName, .other)
            await part.readBackAlong()
            #expect(await condition { try part.damagedClaims(unless: Latch()) } == .other)
            #expect(part.claimedLength == Self.length)
            subject.disk.fail("read " + WatchedPart.partName, nil)
            let damaged = try part.damagedClaims(unless: Latch())
            #expect(damaged.isEmpty)
        }
    }
}
