import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

@Suite("A window of a shared file")
struct WindowFileTests {
    private static let length: Int64 = 100

    private static func run(
        _ range: Range<Int64>, length: Int64 = Self.length,
        _ body: (WindowStorage, FileWindow, WatchedStorage) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let disk = WatchedStorage()
            let data = try disk.open("\(directory)/data", .create)
            defer { data.close() }
            try data.writeFully([UInt8](repeating: 7, count: Int(length)), at: 0)
            let window = FileWindow(
                part: "\(directory)/1-of-2.segdl-part", data: "\(directory)/data",
                inode: try data.status().inode, range: range, completeLength: length, plan: 1)
            _ = disk.take()
            try await body(WindowStorage(window, in: disk), window, disk)
        }
    }

    private static func bytes(
        _ window: FileWindow, in path: String? = nil, _ disk: WatchedStorage
    ) throws -> [UInt8] {
        let file = try disk.open(path ?? window.data, .read)
        defer { file.close() }
        return try file.contents(limit: 1 << 20)
    }

    @Test("Nothing is written once the shared file has another name: it is the user's then")
    func completed() async throws {
        try await Self.run(30..<60) { storage, window, disk in
            let file = try storage.open(window.part, .create)
            defer { file.close() }
            try file.writeFully([1, 2, 3], at: 0)
            try await file.synchronize(metadata: false)
            try disk.rename(window.data, to: "\(window.data).complete", replacing: false)
            #expect(throws: StorageError.self) { try file.writeFully([4], at: 0) }
            let bytes = try Self.bytes(window, in: "\(window.data).complete", disk)
            #expect(bytes[30..<34] == [1, 2, 3, 7])
        }
    }

    @Test("A part of a page is read at once, and written once the page is whole or it is claimed, synced or closed")
    func pages() async throws {
        let page = Int64(SystemCalls.pageLength)
        try await Self.run(page..<3 * page, length: 4 * page) { storage, window, disk in
            let file = try storage.open(window.part, .create)
            func holds(_ count: Int64) throws -> Bool {
                try Self.bytes(window, disk).count { $0 == 1 } == count
            }
            func write(_ range: Range<Int64>) throws {
                try file.writeFully([UInt8](repeating: 1, count: range.count), at: range.lowerBound)
            }
            try write(0..<100)
            #expect(try holds(0))
            #expect(try file.contents(limit: 4 * Int(page)).prefix(101) == [UInt8](repeating: 1, count: 100) + [7])
            try write(100..<page + 10)
            #expect(try holds(page))
            // Not after the first bytes of the page.
            try write(page + 20..<page + 30)
            #expect(try holds(page))
            try await file.synchronize(metadata: false)
            #expect(try holds(page + 20))
            try write(page + 5..<page + 25)
            #expect(try file.contents(limit: 4 * Int(page)).count { $0 == 1 } == Int(page) + 30)
            #expect(try holds(page + 20))
            // Another page's.
            try write(1..<2)
            try file.writeHeldBack(in: 0..<page)
            #expect(try holds(page + 20))
            try file.writeHeldBack(in: page + 24..<page + 25)
            #expect(try holds(page + 30))
            try write(page + 40..<page + 50)
            file.close()
            #expect(try holds(page + 40))
        }
    }

    @Test(
        "Offsets count from the window's start, and no call changes a byte outside of it",
        arguments: [
            0..<10, 30..<60, 90..<100,
        ] as [Range<Int64>])
    func bounds(range: Range<Int64>) async throws {
        try await Self.run(range) { storage, window, disk in
            let file = try storage.open(window.part, .create)
            defer { file.close() }
            #expect(try file.status().length == Int64(range.count))
            try file.begin(length: Int64(range.count), allocates: true)
            try file.writeFully([UInt8](repeating: 1, count: range.count), at: 0)
            try await file.synchronize(metadata: false)
            #expect(await condition { try file.writeFully([2], at: Int64(range.count)) } == .other)
            #expect(await condition { try file.writeFully([2, 2], at: Int64(range.count) - 1) } == .other)
            #expect(await condition { try file.writeFully([2], at: -1) } == .other)
            #expect(await condition { try file.allocate(Int64(range.count) + 1) } == .other)
            #expect(await condition { try file.truncate(to: Int64(range.count) + 1) } == .other)
            try file.truncate(to: 0)
            #expect(try file.contents(limit: 1000) == [UInt8](repeating: 1, count: range.count))
            #expect(try file.firstHole() == Int64(range.count))
            #expect(try file.data() == [0..<Int64(range.count)])
            var expected = [UInt8](repeating: 7, count: Int(Self.length))
            for offset in range { expected[Int(offset)] = 1 }
            #expect(try Self.bytes(window, disk) == expected)
        }
    }

    @Test("The data is durable before the record, which is in the task's own file")
    func record() async throws {
        try await Self.run(30..<60) { storage, window, disk in
            let file = try storage.open(window.part, .create)
            defer { file.close() }
            try file.writeFully([8, 9], at: 0)
            _ = disk.take()
            #expect(try file.setAttribute(FinishedRecord.attribute, Array("record".utf8)))
            try await file.synchronize(metadata: true)
            #expect(
                disk.take() == [
                    "write data", "truncate to 0 1-of-2.segdl-part", "write 1-of-2.segdl-part", "sync data",
                    "sync all of 1-of-2.segdl-part",
                ])
            #expect(try Self.bytes(window, disk)[29..<33] == [7, 8, 9, 7])
            let own = try disk.open(window.part, .read)
            #expect(try own.contents(limit: 100) == FileWindow.record(Array("record".utf8), of: window.plan))
            own.close()
            #expect(try file.attribute(FinishedRecord.attribute) == nil && !file.setAttribute("user.other", [1]))
        }
    }

    @Test("A shared file that was replaced or shortened is not written to", arguments: [false, true])
    func replaced(isShortened: Bool) async throws {
        try await Self.run(30..<60) { storage, window, disk in
            let part = try storage.open(window.part, .create)
            part.close()
            #expect(try storage.status(of: window.part)?.length == 30)
            if isShortened {
                let data = try disk.open(window.data, .update)
                try data.truncate(to: 99)
                data.close()
            } else {
                let other = try disk.open(window.data + "2", .create)
                try other.truncate(to: Self.length)
                other.close()
                try disk.rename(window.data + "2", to: window.data, replacing: true)
            }
            #expect(try storage.status(of: window.part) == nil)
            #expect(await condition { try storage.open(window.part, .update) } == .other)
        }
    }
}
