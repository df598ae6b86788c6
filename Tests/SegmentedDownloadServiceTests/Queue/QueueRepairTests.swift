import Foundation
import GRDB
import Origin
import SystemPackage
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadService

/// Damaged databases, which are set aside and made again from what is left.
@Suite struct QueueRepairTests {
    private static func overwrite(_ path: String, at offset: UInt64, count: Int) throws {
        let file = try #require(FileHandle(forUpdatingAtPath: path))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: Data(repeating: 0xA5, count: count))
        try file.close()
    }

    private static func queue(_ directory: String) -> DownloadQueue {
        DownloadQueue(
            database: FilePath(directory + "/state/queue.sqlite"), directory: FilePath(directory + "/files"))
    }

    /// Runs a queue while `body` does.
    private static func run(
        _ directory: String, _ body: (DownloadQueue) async throws -> Void
    ) async throws {
        let queue = Self.queue(directory)
        async let running: Void = queue.run()
        do {
            try await body(queue)
        } catch {
            queue.shutdown()
            try await running
            throw error
        }
        queue.shutdown()
        try await running
    }

    private static func asides(_ directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory + "/state").filter { $0.contains(".damaged-") }
    }

    @Test("After its database is destroyed a queue has the downloads that left a manifest, paused, wherever they are")
    func fromManifests() async throws {
        try await withTemporaryDirectory { directory in
            try await withOrigin { origin in
                var ids: [QueueEntry.ID] = []
                try await Self.run(directory) { queue in
                    var elsewhere = DownloadRequest(
                        try SourceURL(origin.plainURL("/64M/b.bin?stall-after=4M:all")),
                        to: .file(FilePath(directory + "/elsewhere/b.bin")))
                    elsewhere.segments = .exactly(2)
                    var here = DownloadRequest(try SourceURL(origin.plainURL("/64M/a.bin?stall-after=4M:all")))
                    here.segments = .exactly(2)
                    ids = try await queue.add([here, elsewhere])
                    for id in ids {
                        while try await queue.entry(id)?.progress?.bytesDone ?? 0 < 1 << 20 { await Task.yield() }
                    }
                }
                // Of another program, in the same directory.
                let foreign = directory + "/files/c.bin.segdl"
                try FileManager.default.copyItem(atPath: directory + "/files/a.bin.segdl", toPath: foreign)
                try Data("other".utf8).write(to: URL(fileURLWithPath: foreign))
                let database = directory + "/state/queue.sqlite"
                let before = try Data(contentsOf: URL(fileURLWithPath: database))
                try Self.overwrite(database, at: 0, count: before.count)
                try await Self.run(directory) { queue in
                    let entries = try await queue.entries()
                    #expect(Set(entries.map(\.id)) == Set(ids) && entries.allSatisfy { $0.state == .paused })
                    let repair = try #require(queue.repair)
                    #expect(repair.foundCount == 2 && repair.readCount == 0)
                    #expect(FileManager.default.fileExists(atPath: repair.setAside.string))
                    // Their bodies do not stall any more.
                    for name in ["a.bin", "b.bin"] { _ = origin.plainURL("/64M/\(name)") }
                    try await queue.resume(ids)
                    for await _ in queue.changes where try await queue.entries().isEmpty { break }
                    #expect(try await queue.history(limit: 9).allSatisfy { $0.outcome == .completed })
                }
                for path in ["files/a.bin", "elsewhere/b.bin"] {
                    #expect(
                        OriginContent(seed: 1).firstMismatch(inFileAt: "\(directory)/\(path)", length: 64 << 20) == nil)
                }
                // A good database is left alone.
                try await Self.run(directory) { queue in
                    _ = try await queue.entries()
                    #expect(queue.repair == nil)
                }
                #expect(try Self.asides(directory).count == 1)
            }
        }
    }

    @Test("What a damaged database still has is kept: entries in their order, history and settings")
    func fromRemains() async throws {
        try await withTemporaryDirectory { directory in
            let path = FilePath(directory + "/state/queue.sqlite")
            let database = try QueueDatabase(at: path)
            let records = try (1...400).map { try QueueStateMachineTests.record($0) }
            try database.apply(records.map { .insert($0) })
            try database.insert((1...5).map { QueueStateMachineTests.row($0 + 1000) })
            try database.set("limits", to: "{}")
            try database.close()
            // A page in the middle.
            let length = try #require(
                try FileManager.default.attributesOfItem(atPath: path.string)[.size] as? UInt64)
            try Self.overwrite(path.string, at: length / 2 / 4096 * 4096, count: 4096)
            let opening = try await DatabaseStorage.open(at: path, directory: FilePath(directory + "/files"))
            let repair = try #require(opening.repair)
            #expect(repair.readCount > 100 && repair.readCount < 400, "\(repair)")
            #expect(opening.records.count == repair.readCount)
            #expect(
                opening.records.map(\.id) == records.map(\.id).filter { Set(opening.records.map(\.id)).contains($0) })
            #expect(try await opening.storage.setting("limits") == "{}")
            #expect(try await opening.storage.history(limit: 9, offset: 0).count == 5)
            try await opening.storage.close()
            let again = try await DatabaseStorage.open(at: path, directory: FilePath(directory + "/files"))
            #expect(again.repair == nil && again.records == opening.records)
            try await again.storage.close()
        }
    }

    @Test(
        "A database that failed while it ran is examined at the next start, and repaired only if it is damaged")
    func marked() async throws {
        try await withTemporaryDirectory { directory in
            let path = FilePath(directory + "/state/queue.sqlite")
            let files = FilePath(directory + "/files")
            let first = try await DatabaseStorage.open(at: path, directory: files)
            try await first.storage.apply([.insert(try QueueStateMachineTests.record(1))])
            try await first.storage.close()
            // An error of the disk that is over.
            QueueFile.mark(path)
            let sound = try await DatabaseStorage.open(at: path, directory: files)
            #expect(sound.repair == nil && sound.records.count == 1 && !QueueFile.isMarked(path))
            try await sound.storage.apply((0..<2000).map { .finish(QueueEntry.ID($0), QueueStateMachineTests.row($0)) })
            try await sound.storage.close()
            // Of the history, which is not read at the start.
            QueueFile.mark(path)
            let length = try #require(
                try FileManager.default.attributesOfItem(atPath: path.string)[.size] as? UInt64)
            try Self.overwrite(path.string, at: length - 4096 * 4, count: 4096)
            let second = try await DatabaseStorage.open(at: path, directory: files)
            #expect(second.repair != nil)
            try await second.storage.close()
            let third = try await DatabaseStorage.open(at: path, directory: files)
            #expect(third.repair == nil)
            try await third.storage.close()
            #expect(try Self.asides(directory).filter { !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }.count == 1)
        }
    }

    @Test("A repair that was killed at any step is completed, or made again, by the next start", arguments: 0..<4)
    func interrupted(step: Int) async throws {
        try await withTemporaryDirectory { directory in
            let path = FilePath(directory + "/state/queue.sqlite")
            let files = FilePath(directory + "/files")
            let record = try QueueStateMachineTests.record(1)
            // A replacement that is complete.
            let draft = FilePath(path.string + "-draft")
            let database = try QueueDatabase(at: draft, for: path)
            try database.apply([.insert(record)])
            try database.close()
            // The damaged database and its log, which must not be applied to the replacement.
            try Data(repeating: 0xA5, count: 8192).write(to: URL(fileURLWithPath: path.string))
            try Data(repeating: 0x5A, count: 4096).write(to: URL(fileURLWithPath: path.string + "-wal"))
            for name in [path.string, path.string + "-wal"] { chmod(name, 0o600) }
            let aside = path.string + ".damaged-20260101T000000Z"
            if step > 0 { for suffix in ["", "-wal"] { link(path.string + suffix, aside + suffix) } }
            if step > 1 { rename(draft.string, path.string + "-replacement") }
            if step > 2 { unlink(path.string + "-wal") }
            let opening = try await DatabaseStorage.open(at: path, directory: files)
            // Before the replacement has its name, the draft is not used: it may not be complete.
            #expect(opening.records.map(\.id) == (step > 1 ? [record.id] : []))
            #expect((opening.repair == nil) == (step > 1))
            try await opening.storage.apply([.insert(try QueueStateMachineTests.record(2))])
            try await opening.storage.close()
            let again = try await DatabaseStorage.open(at: path, directory: files)
            #expect(again.repair == nil && again.records.count == (step > 1 ? 2 : 1))
            try await again.storage.close()
            let names = try FileManager.default.contentsOfDirectory(atPath: directory + "/state")
            #expect(!names.contains { $0.hasSuffix("-draft") || $0.hasSuffix("-replacement") }, "\(names)")
        }
    }

    @Test("Rows that no version writes are left out of a repair, and counted")
    func impossibleRows() async throws {
        try await withTemporaryDirectory { directory in
            let path = FilePath(directory + "/state/queue.sqlite")
            let database = try QueueDatabase(at: path)
            try database.apply(try (1...4).map { .insert(try QueueStateMachineTests.record($0)) })
            try await database.queue.write { connection in
                for (id, change) in [
                    (1, "position = 9223372036854775807"), (2, "attempts = -1"),
                    (3, "request = replace(request, 'http:', 'htt:')"),
                ] {
                    try connection.execute(
                        sql: "UPDATE entry SET \(change) WHERE id = ?", arguments: [QueueEntry.ID(UInt64(id)).rawValue])
                }
            }
            try database.close()
            let opening = try await DatabaseStorage.open(at: path, directory: FilePath(directory + "/files"))
            #expect(opening.records.map(\.id.number) == [4])
            #expect(opening.repair?.readCount == 1 && opening.repair?.unreadableCount == 3)
            try await opening.storage.close()
        }
    }
}
