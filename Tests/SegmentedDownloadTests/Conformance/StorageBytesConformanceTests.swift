import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#endif

@Suite("What every storage does with the bytes of a file")
struct StorageBytesConformanceTests {
    @Test(
        "Bytes are read where they were written, and a gap before them reads as zeros",
        arguments: StorageDoor.Kind.allCases)
    func offsets(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a")
            defer { file.close() }
            try file.writeFully([1, 2, 3], at: 5)
            try file.writeFully([9, 9], at: 6)
            #expect(try file.contents(limit: 100) == [0, 0, 0, 0, 0, 1, 9, 9])
            #expect(try file.bytes(2, at: 5) == [1, 9])
            try file.writeFully([7], at: 100_000)
            #expect(try file.status().length == 100_001)
            #expect(try file.bytes(64, at: 50_000) == Array(repeating: 0, count: 64))
        }
    }

    @Test("A read ends with the file, and behind it there is nothing", arguments: StorageDoor.Kind.allCases)
    func end(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1, 2, 3])
            defer { file.close() }
            #expect(try file.bytes(10, at: 1) == [2, 3])
            #expect(try file.bytes(10, at: 3) == [])
            #expect(try file.bytes(10, at: 1 << 40) == [])
        }
    }

    @Test("Writing no bytes behind the end does not lengthen the file", arguments: StorageDoor.Kind.allCases)
    func empty(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1])
            defer { file.close() }
            #expect(try file.write(UnsafeRawBufferPointer(start: nil, count: 0), at: 10) == 0)
            #expect(try file.status().length == 1)
        }
    }

    @Test(
        "A file that is opened to append is created once, and what is written goes behind its end",
        arguments: StorageDoor.Kind.allCases)
    func appended(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let one = try door.storage.open(door.path("a"), .append)
            defer { one.close() }
            #expect(try one.status().length == 0 && one.status().ownership.permissions == 0o600)
            try one.writeFully([1, 2], at: 0)
            let other = try door.storage.open(door.path("a"), .append)
            defer { other.close() }
            #expect(try other.status().isSameFile(as: one.status()))
            for (file, offset) in [(other, 0), (one, 1), (other, 100)] as [(any StorageFile, Int64)] {
                try file.writeFully([3], at: offset)
            }
            #expect(try one.contents(limit: 100) == [1, 2, 3, 3, 3] && other.bytes(2, at: 1) == [2, 3])
            try door.storage.makeDirectory(door.path("d"))
            await door.expectError(EISDIR, .isDirectory, of: "open", "d") {
                try door.storage.open(door.path("d"), .append)
            }
            await door.expectError(ENOENT, .notFound, of: "open", "none/a") {
                try door.storage.open(door.path("none/a"), .append)
            }
        }
    }

    @Test("A file that is cut loses its end for good, and grows with zeros", arguments: StorageDoor.Kind.allCases)
    func truncated(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1, 2, 3, 4])
            defer { file.close() }
            try file.truncate(to: 2)
            #expect(try file.status().length == 2)
            try file.truncate(to: 5)
            #expect(try file.contents(limit: 100) == [1, 2, 0, 0, 0])
        }
    }

    @Test(
        "Reserving space keeps what was written, reads as zeros behind it, and never shortens the file",
        arguments: StorageDoor.Kind.allCases)
    func reserved(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1, 2])
            defer { file.close() }
            // A file system that cannot reserve space leaves the file as it is.
            let length: Int64 = try file.allocate(4096) ? 4096 : 2
            #expect(try file.status().length == length)
            #expect(try file.bytes(4, at: 0) == Array([1, 2, 0, 0].prefix(Int(length))))
            _ = try file.allocate(1)
            #expect(try file.status().length == length)
        }
    }

    @Test("A file that was written without a gap has no hole before its end", arguments: StorageDoor.Kind.allCases)
    func holes(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", Array(repeating: 1, count: 10_000))
            defer { file.close() }
            #expect(try file.firstHole() == 10_000)
            try file.truncate(to: 1 << 20)
            // A file system need not report the hole.
            #expect((10_000...(1 << 20)).contains(try file.firstHole()))
        }
    }

    @Test("Two open files of one path see each other's changes at once", arguments: StorageDoor.Kind.allCases)
    func shared(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let (one, other) = (try door.create("a", [1]), try door.storage.open(door.path("a"), .update))
            let reader = try door.storage.open(door.path("a"), .read)
            for file in [one, other, reader] { #expect(try file.status().length == 1) }
            try other.writeFully([2, 3], at: 1)
            #expect(try one.contents(limit: 10) == [1, 2, 3] && reader.contents(limit: 10) == [1, 2, 3])
            // Closing one of them, once or twice, leaves the others open.
            one.close()
            one.close()
            try other.truncate(to: 2)
            #expect(try reader.contents(limit: 10) == [1, 2])
            other.close()
            reader.close()
        }
    }

    @Test("A file that is open for reading only cannot be changed", arguments: StorageDoor.Kind.allCases)
    func readOnly(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.put("a", [1, 2])
            let file = try door.storage.open(door.path("a"), .read)
            defer { file.close() }
            await door.expectError(EBADF, .other, of: "pwrite", "a") { try file.writeFully([9], at: 0) }
            await door.expectError(EINVAL, .other, of: "ftruncate", "a") { try file.truncate(to: 1) }
            await door.expectError(EBADF, .other, of: "fallocate", "a") { try file.allocate(100) }
            #expect(try file.contents(limit: 10) == [1, 2])
        }
    }

    @Test("Syncs of data, of all of a file and of a directory succeed", arguments: StorageDoor.Kind.allCases)
    func synced(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1, 2])
            defer { file.close() }
            try await file.synchronize(metadata: false)
            try await file.synchronize(metadata: true)
            try await door.storage.synchronize(directory: door.directory)
            #expect(try file.contents(limit: 10) == [1, 2])
            await door.expectError(ENOENT, .notFound, of: "open", "none") {
                try await door.storage.synchronize(directory: door.path("none"))
            }
            await door.expectError(ENOTDIR, .isDirectory, of: "open", "a") {
                try await door.storage.synchronize(directory: door.path("a"))
            }
        }
    }
}
