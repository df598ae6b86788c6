import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

@Suite("What every storage reports about a file, and how it locks it")
struct StorageFactsConformanceTests {
    @Test("Path and open file have one status", arguments: StorageDoor.Kind.allCases)
    func status(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1, 2, 3])
            defer { file.close() }
            let own = try file.status()
            #expect(own.kind == .file && own.length == 3 && own.linkCount == 1)
            #expect(own.ownership.owner == door.storage.user)
            for other in [try door.status(of: "a"), try door.storage.target(of: door.path("a"))] {
                #expect(other?.isSame(as: own) == true && other?.ownership == own.ownership && other?.kind == .file)
            }
        }
    }

    @Test("A file keeps its identity under any name, and no two files share one", arguments: StorageDoor.Kind.allCases)
    func identity(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let (one, other) = (try door.create("a"), try door.create("b"))
            let identity = try one.status().identity
            #expect(try other.status().identity != identity)
            try door.storage.rename(door.path("a"), to: door.path("c"), replacing: false)
            try one.writeFully([1], at: 0)
            #expect(try one.status().identity == identity && door.status(of: "c")?.identity == identity)
            #expect(door.storage.bootID == door.storage.bootID && !door.storage.bootID.isEmpty)
            #expect(door.storage.keepsFiles)
            one.close()
            other.close()
        }
    }

    @Test("A private file is for its owner only, and permissions can be changed", arguments: StorageDoor.Kind.allCases)
    func permissions(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.storage.open(door.path("a"), .createPrivate)
            defer { file.close() }
            #expect(try file.status().ownership.permissions == 0o600)
            try file.setPermissions(0o640)
            #expect(try file.status().ownership.permissions == 0o640)
            #expect(try door.status(of: "a")?.ownership == Ownership(owner: door.storage.user, permissions: 0o640))
            let open = try door.create("b")
            defer { open.close() }
            // The umask decides on the others.
            #expect(try open.status().ownership.permissions & ~0o066 == 0o600)
            if let new = door.storage.permissionsOfNewFile(at: door.path("c")) {
                #expect(try open.status().ownership.permissions == new)
            }
        }
    }

    @Test(
        "A private directory is for its owner only, and so are its parents that are created with it",
        arguments: StorageDoor.Kind.allCases)
    func privateDirectory(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.storage.makeDirectory(door.path("a"))
            let before = try door.status(of: "a")?.ownership.permissions
            try door.storage.makeDirectory(door.path("a/b/c"), isPrivate: true)
            for name in ["a/b", "a/b/c"] {
                #expect(try door.status(of: name)?.ownership.permissions == 0o700)
            }
            // One that exists stays as it is.
            try door.storage.makeDirectory(door.path("a"), isPrivate: true)
            #expect(try door.status(of: "a")?.ownership.permissions == before)
        }
    }

    @Test(
        "The modification time is the one that was set, until the bytes change",
        arguments: StorageDoor.Kind.allCases)
    func modified(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1])
            defer { file.close() }
            let time: Int64 = 1_000_000_000_000_000_000
            try file.setModified(1_000_000_000)
            #expect(try file.status().modified == time && file.status().length == 1)
            // Neither a read nor another name is a change.
            #expect(try file.contents(limit: 10) == [1])
            try door.storage.rename(door.path("a"), to: door.path("b"), replacing: false)
            #expect(try door.status(of: "b")?.modified == time)
            try file.writeFully([1], at: 0)
            #expect(try file.status().modified != time)
            try file.setModified(1_000_000_000)
            try file.truncate(to: 0)
            #expect(try file.status().modified != time)
        }
    }

    /// The changes of a file that move the time of its last change.
    enum Change: CaseIterable {
        case write, truncate, attribute, modified, permissions, name

        /// Makes the change for the so-manieth time.
        func make(_ turn: Int, of file: any StorageFile, _ door: StorageDoor) throws {
            let number = UInt8(truncatingIfNeeded: turn)
            switch self {
            case .write: try file.writeFully([number], at: 0)
            case .truncate: try file.truncate(to: Int64(number))
            case .attribute: _ = try file.setAttribute(FinishedRecord.attribute, [number])
            // Into the past.
            case .modified: try file.setModified(Int64(number))
            case .permissions: try file.setPermissions(turn % 2 == 0 ? 0o600 : 0o640)
            case .name:
                let names = turn % 2 == 0 ? ["a", "b"] : ["b", "a"]
                try door.storage.rename(door.path(names[0]), to: door.path(names[1]), replacing: false)
            }
        }
    }

    @Test(
        "The time of the last change moves with content, attributes, times, permissions and name",
        arguments: StorageDoor.Kind.allCases)
    func changed(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1])
            defer { file.close() }
            let hasAttributes = try file.setAttribute(FinishedRecord.attribute, [1])
            for change in Change.allCases where hasAttributes || change != .attribute {
                let before = try file.status()
                // A read is no change.
                _ = try file.contents(limit: 10)
                #expect(try file.status().isUnchanged(since: before))
                // Many changes fit into a tick of the system's clock.
                var now = before.changed
                for turn in 0..<1_000_000 where now == before.changed {
                    try change.make(turn, of: file, door)
                    now = try file.status().changed
                }
                #expect(now > before.changed, "\(change)")
            }
        }
    }

    @Test(
        "An attribute belongs to the file and is not a change of its bytes",
        arguments: StorageDoor.Kind.allCases)
    func attributes(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let (file, name) = (try door.create("a", [1]), FinishedRecord.attribute)
            defer { file.close() }
            #expect(file.attribute(name) == nil)
            // Removing what is not there is no error.
            try file.removeAttribute(name)
            try file.setModified(1_000_000_000)
            guard try file.setAttribute(name, [1, 2, 3]) else {
                // The file system has no attributes.
                #expect(file.attribute(name) == nil)
                return
            }
            #expect(file.attribute(name) == [1, 2, 3])
            #expect(try file.setAttribute(name, [4]) && file.attribute(name) == [4])
            try door.storage.rename(door.path("a"), to: door.path("b"), replacing: false)
            let other = try door.storage.open(door.path("b"), .read)
            defer { other.close() }
            #expect(other.attribute(name) == [4])
            #expect(try file.status().modified == 1_000_000_000_000_000_000 && file.status().length == 1)
            try file.removeAttribute(name)
            #expect(file.attribute(name) == nil && other.attribute(name) == nil)
        }
    }

    @Test(
        "The lock belongs to the open file that took it, until that is closed",
        arguments: StorageDoor.Kind.allCases)
    func locks(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let (one, other) = (try door.create("a"), try door.storage.open(door.path("a"), .update))
            #expect(try one.tryLock() == .taken)
            #expect(try other.tryLock() == .busy)
            #expect(try one.tryLock() == .taken, "the holder may ask again")
            // The lock is the file's, not the name's.
            try door.storage.rename(door.path("a"), to: door.path("b"), replacing: false)
            #expect(try other.tryLock() == .busy)
            let unrelated = try door.create("a")
            #expect(try unrelated.tryLock() == .taken)
            other.close()
            let third = try door.storage.open(door.path("b"), .read)
            #expect(try third.tryLock() == .busy, "the holder has not closed it")
            one.close()
            #expect(try third.tryLock() == .taken)
            for file in [third, unrelated] { file.close() }
        }
    }
}
