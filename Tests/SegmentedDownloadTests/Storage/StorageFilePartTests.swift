import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

/// What is done to the file of a part besides writing.
@Suite("The file of a part")
struct StorageFilePartTests {
    @Test("Only the owner may write to a part, under any umask")
    func permissions() async throws {
        for (before, calls) in [(0o666, ["permit 644"]), (0o620, ["permit 600"]), (0o604, [])] as [(UInt32, [String])] {
            try await WatchedPart.run { subject in
                try subject.part.file.setPermissions(before)
                _ = subject.disk.take()
                try subject.part.file.protect()
                #expect(subject.disk.take() == calls.map { $0 + " " + WatchedPart.partName })
            }
        }
    }

    @Test("Where the mount decides on permissions a part is fetched all the same; a read-only disk is a failure")
    func fixedPermissions() async throws {
        for (failure, isReported) in [(.permission, false), (.unsupported, false), (.readOnly, true)]
            as [(StorageError.Condition, Bool)]
        {
            try await WatchedPart.run { subject in
                try subject.part.file.setPermissions(0o666)
                subject.disk.fail("permit 644 " + WatchedPart.partName, failure)
                #expect(await condition { try subject.part.file.protect() } == (isReported ? failure : nil))
            }
        }
    }

    /// Runs `body` with an open file of ten bytes.
    private static func run(_ body: (WatchedStorage, any StorageFile) throws -> Void) async throws {
        try await withTemporaryDirectory { directory in
            let disk = WatchedStorage()
            let file = try disk.open(directory + "/data", .create)
            defer { file.close() }
            try file.writeFully(WatchedPart.bytes(0..<10), at: 0)
            _ = disk.take()
            try body(disk, file)
        }
    }

    @Test("A file is emptied and gets its length, by reserved space where the file system can reserve any")
    func begun() async throws {
        for (length, allocates, canAllocate, calls) in [
            (100, true, true, ["allocate 100"]), (100, true, false, ["allocate 100", "truncate to 100"]),
            (100, false, true, ["truncate to 100"]), (0, true, true, []),
        ] as [(Int64, Bool, Bool, [String])] {
            try await Self.run { disk, file in
                if !canAllocate { disk.forbidAllocation() }
                try file.begin(length: length, allocates: allocates)
                #expect(disk.take() == (["truncate to 0"] + calls).map { $0 + " data" })
                let contents = try file.contents(limit: 1000)
                #expect(contents == [UInt8](repeating: 0, count: Int(length)))
            }
        }
    }

    @Test("The bytes of a claim are written again as they are, and not where some are missing")
    func rewritten() async throws {
        for (range, writes) in [(2..<8, 1), (2..<10, 1), (2..<11, 0)] as [(Range<Int64>, Int)] {
            try await Self.run { disk, file in
                try file.rewrite(WatchedPart.claim(range))
                #expect(disk.take() == Array(repeating: "write data", count: writes))
                let contents = try file.contents(limit: 1000)
                #expect(contents == WatchedPart.bytes(0..<10))
            }
        }
    }
}
