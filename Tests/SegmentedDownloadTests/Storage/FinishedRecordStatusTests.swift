import CLinux
import Foundation
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// When a finished file need not be read.
@Suite("What the status of a finished file proves")
struct FinishedRecordStatusTests {
    private static let millisecond: Int64 = 1_000_000
    private static let second: Int64 = 1_000_000_000
    /// An even number of seconds.
    private static let start: Int64 = 1_700_000_000 * second

    private static func record(modified: Int64, changed: Int64?) -> FinishedRecord {
        var record = FinishedRecord(
            resource: WatchedPart.resource(10), length: 10, crc: CRC32(of: WatchedPart.bytes(0..<10)),
            modified: modified)
        record.changed = changed
        return record
    }

    private static func status(modified: Int64, changed: Int64) -> StorageStatus {
        StorageStatus(
            kind: .file, length: 10, device: 1, inode: 2, linkCount: 1, allocated: 0, modified: modified,
            changed: changed)
    }

    @Test("A file that has not changed since it got its name is as it was, if it was written in an earlier tick")
    func fineTimes() {
        let tick = 10 * Self.millisecond
        // After the beginning of a tick.
        let changed = Self.start + 12 * tick + 5
        for (modified, later, isProved) in [
            (changed - tick, 0, true), (changed - tick, tick, true), (changed - tick, tick + 1, false),
            (changed - tick, -1, false), (changed - tick, 3600 * Self.second, false),
            // In the tick in which it got its name, or after it.
            (changed, 0, false), (changed - 5, 0, false), (changed - 6, 0, true), (changed + tick, 0, false),
            // The server's date.
            (Self.start - 1_000_000 * Self.second, tick, true), (Self.start - 1_000_000 * Self.second, tick + 1, false),
            (-Self.second, 0, true),
        ] as [(Int64, Int64, Bool)] {
            let record = Self.record(modified: modified, changed: changed)
            let status = Self.status(modified: modified, changed: changed + later)
            #expect(record.proves(status) == isProved, "\(changed - modified) before, \(later) later")
        }
    }

    @Test("Whole seconds may be the unit of the file system's clock, and even ones half of it")
    func coarseTimes() {
        for (modified, changed, later, isProved) in [
            (1, 3, 0, true), (1, 3, 1, true), (1, 3, 2, false), (3, 3, 0, false), (4, 3, 0, false), (2, 3, 1, true),
            (0, 2, 0, true), (0, 2, 2, true), (0, 2, 3, false), (2, 2, 0, false), (1, 2, 1, true), (1, 2, 2, false),
        ] as [(Int64, Int64, Int64, Bool)] {
            let record = Self.record(
                modified: Self.start + modified * Self.second, changed: Self.start + changed * Self.second)
            let status = Self.status(
                modified: Self.start + modified * Self.second, changed: Self.start + (changed + later) * Self.second)
            #expect(record.proves(status) == isProved, "\(modified), \(changed), \(later)")
        }
    }

    @Test("A file with another length or time, that was not synced, or whose last change is unknown must be read")
    func notProved() {
        let (modified, changed) = (Self.start, Self.start + Self.second + 1)
        let status = Self.status(modified: modified, changed: changed)
        #expect(Self.record(modified: modified, changed: changed).proves(status))
        #expect(!Self.record(modified: modified, changed: nil).proves(status))
        #expect(!Self.record(modified: modified + 1, changed: changed).proves(status))
        var record = Self.record(modified: modified, changed: changed)
        record.length = 11
        #expect(!record.proves(status))
        record = Self.record(modified: modified, changed: changed)
        record.isSynced = false
        #expect(!record.proves(status))
    }

    @Test("Times at the ends of their range are compared, too")
    func extremeTimes() {
        let times: [Int64] = [.min, -1, 0, Self.start, .max - Self.millisecond, .max]
        for changed in times {
            for now in times {
                let record = Self.record(modified: .min, changed: changed)
                let isProved = changed >= 0 && now >= changed && now - changed <= Self.millisecond
                #expect(record.proves(Self.status(modified: .min, changed: now)) == isProved, "\(changed), \(now)")
            }
        }
    }

    // MARK: On disk

    @Test("Bytes that were changed after the file got its name are noticed, although the time is as before")
    func restoredTime() async throws {
        for isDated in [false, true] {
            try await WatchedPart.run { subject in
                let path = subject.paths.destination
                let file = try subject.disk.open(path, .create)
                defer { file.close() }
                try file.writeFully(WatchedPart.bytes(0..<10), at: 0)
                // As with --remote-time.
                if isDated { try file.setModified(1_000_000_000) }
                let before = try file.status()
                let record = Self.record(modified: before.modified, changed: before.changed)
                #expect(try record.describes(file, before))
                let time = timespec(
                    tv_sec: Int(before.modified / Self.second), tv_nsec: Int(before.modified % Self.second))
                // Until it is seen that the file has changed, which is a matter of milliseconds.
                repeat {
                    try file.writeFully([0xFF], at: 5)
                    _ = utimensat(AT_FDCWD, path, [time, time], 0)
                } while try file.status().changed <= before.changed + 10 * Self.millisecond
                let status = try file.status()
                #expect(status.modified == before.modified && status.length == before.length)
                #expect(try !record.proves(status) && !record.describes(file, status))
            }
        }
    }

    @Test("A file is read only if its status proves nothing")
    func reading() async throws {
        try await WatchedPart.run { subject in
            let file = try subject.disk.open(subject.paths.destination, .create)
            defer { file.close() }
            try file.writeFully(WatchedPart.bytes(0..<10), at: 0)
            let modified = Self.start
            let status = Self.status(modified: modified, changed: modified + Self.second + 1)
            subject.disk.fail("read file.bin", .other)
            #expect(try Self.record(modified: modified, changed: status.changed).describes(file, status))
            let unknown = Self.record(modified: modified, changed: nil)
            #expect(await condition { try unknown.describes(file, status) } == .other)
            subject.disk.fail("read file.bin", nil)
            #expect(try unknown.describes(file, status))
            var damaged = unknown
            damaged.crc = CRC32()
            #expect(try !damaged.describes(file, status))
            var longer = unknown
            longer.length = 11
            #expect(try !longer.describes(file, status))
        }
    }
}
