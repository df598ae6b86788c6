import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#endif

@Suite("What every storage does with names")
struct StorageNamesConformanceTests {
    @Test("A new file is created once, and what exists is not touched", arguments: StorageDoor.Kind.allCases)
    func created(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.put("a", [1])
            for mode in [StorageOpenMode.create, .createPrivate] {
                await door.expectError(EEXIST, .exists, of: "open", "a") {
                    try door.storage.open(door.path("a"), mode)
                }
            }
            #expect(try door.contents(of: "a") == [1])
        }
    }

    @Test(
        "A file without a name is not found, and has its bytes once it gets one", arguments: StorageDoor.Kind.allCases)
    func unnamed(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try #require(try door.storage.openUnnamed(for: door.path("a")))
            try file.writeFully([1, 2], at: 0)
            #expect(try file.status().linkCount == 0 && door.status(of: "a") == nil)
            #expect(try door.storage.names(in: door.directory).sorted() == [".", ".."])
            try door.storage.name(file, door.path("a"))
            #expect(try door.contents(of: "a") == [1, 2])
            #expect(try file.status().linkCount == 1)
            #expect(try door.status(of: "a")?.isSameFile(as: file.status()) == true)
            file.close()
        }
    }

    @Test("A file without a name does not get one that is taken", arguments: StorageDoor.Kind.allCases)
    func unnamedTaken(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.put("a", [1])
            let file = try #require(try door.storage.openUnnamed(for: door.path("b")))
            await door.expectError(EEXIST, .exists, of: "linkat", "a") {
                try door.storage.name(file, door.path("a"))
            }
            file.close()
            #expect(try door.contents(of: "a") == [1])
            #expect(try door.storage.names(in: door.directory).sorted() == [".", "..", "a"])
        }
    }

    @Test("What does not exist has no status, and cannot be opened", arguments: StorageDoor.Kind.allCases)
    func missing(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            #expect(try door.status(of: "a") == nil && door.storage.target(of: door.path("a")) == nil)
            #expect(try door.status(of: "none/a") == nil)
            for mode in [StorageOpenMode.read, .update] {
                await door.expectError(ENOENT, .notFound, of: "open", "a") {
                    try door.storage.open(door.path("a"), mode)
                }
            }
            await door.expectError(ENOENT, .notFound, of: "open", "none/a") {
                try door.storage.open(door.path("none/a"), .create)
            }
            // Removing it is no error: another process may have been faster.
            try door.storage.remove(door.path("a"))
        }
    }

    @Test("A rename keeps the file and its bytes, and replaces the target", arguments: StorageDoor.Kind.allCases)
    func replaced(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.put("a", [1])
            let old = try door.create("b", [2])
            let before = try #require(try door.status(of: "a"))
            try door.storage.rename(door.path("a"), to: door.path("b"), replacing: true)
            #expect(try door.status(of: "a") == nil && door.contents(of: "b") == [1])
            #expect(try door.status(of: "b")?.isSameFile(as: before) == true)
            // The replaced file is still there for those who have it open.
            #expect(try old.contents(limit: 10) == [2] && old.status().linkCount == 0)
            old.close()
        }
    }

    @Test("A rename that may not replace fails if the target exists", arguments: StorageDoor.Kind.allCases)
    func notReplaced(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.put("a", [1])
            try door.put("b", [2])
            await door.expectError(EEXIST, .exists, of: "rename", "b") {
                try door.storage.rename(door.path("a"), to: door.path("b"), replacing: false)
            }
            #expect(try door.contents(of: "a") == [1] && door.contents(of: "b") == [2])
            try door.storage.rename(door.path("a"), to: door.path("c"), replacing: false)
            #expect(try door.status(of: "a") == nil && door.contents(of: "c") == [1])
        }
    }

    @Test("A file that is renamed to its own name stays", arguments: StorageDoor.Kind.allCases)
    func renamedToItself(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.put("a", [1])
            try door.storage.rename(door.path("a"), to: door.path("a"), replacing: true)
            await door.expectError(EEXIST, .exists, of: "rename", "a") {
                try door.storage.rename(door.path("a"), to: door.path("a"), replacing: false)
            }
            #expect(try door.contents(of: "a") == [1] && door.status(of: "a")?.linkCount == 1)
        }
    }

    @Test(
        "A file gets a free name in one call or in several, and stays the same file",
        arguments: StorageDoor.Kind.allCases)
    func renamedExclusively(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1])
            defer { file.close() }
            try door.put("b", [2])
            #expect(
                await condition { try door.storage.renameExclusively(door.path("a"), to: door.path("b")) } == .exists)
            #expect(await condition { try door.storage.renameOtherwise(door.path("a"), to: door.path("b")) } == .exists)
            try door.storage.renameExclusively(door.path("a"), to: door.path("c"))
            #expect(try door.status(of: "c")?.isSameFile(as: file.status()) == true)
            try door.storage.renameOtherwise(door.path("c"), to: door.path("d"))
            #expect(try door.status(of: "d")?.isSameFile(as: file.status()) == true)
            let names = try door.storage.names(in: door.directory).filter { $0 != "." && $0 != ".." }
            #expect(names.sorted() == ["b", "d"])
            #expect(try door.contents(of: "b") == [2] && door.contents(of: "d") == [1])
        }
    }

    @Test(
        "A rename of nothing fails, and the error names the target",
        arguments: StorageDoor.Kind.allCases, [false, true])
    func renamedNothing(kind: StorageDoor.Kind, replacing: Bool) async throws {
        try await StorageDoor.run(kind) { door in
            await door.expectError(ENOENT, .notFound, of: "rename", "b") {
                try door.storage.rename(door.path("a"), to: door.path("b"), replacing: replacing)
            }
        }
    }

    @Test(
        "A removed file exists as long as it is open, and its name is free for another",
        arguments: StorageDoor.Kind.allCases)
    func removed(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = try door.create("a", [1])
            try door.storage.remove(door.path("a"))
            #expect(try door.status(of: "a") == nil && file.status().linkCount == 0)
            try door.put("a", [9, 9])
            try file.writeFully([2], at: 1)
            #expect(try file.contents(limit: 10) == [1, 2] && door.contents(of: "a") == [9, 9])
            #expect(try door.status(of: "a")?.isSameFile(as: file.status()) == false)
            file.close()
        }
    }

    // MARK: Directories

    @Test(
        "Directories are made with their parents, and making one again changes nothing",
        arguments: StorageDoor.Kind.allCases)
    func made(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            for _ in 0..<2 {
                try door.storage.makeDirectory(door.path("a/b/c"))
                for name in ["a", "a/b", "a/b/c"] {
                    #expect(try door.status(of: name)?.kind == .directory)
                    #expect(try door.storage.target(of: door.path(name))?.kind == .directory)
                }
            }
            try door.storage.makeDirectory(door.directory)
            try door.put("a/b/c/file", [1])
            #expect(try door.contents(of: "a/b/c/file") == [1])
            try door.storage.checkWritable(directory: door.path("a/b/c"))
            try await door.storage.synchronize(directory: door.path("a/b/c"))
        }
    }

    @Test(
        "Only an empty directory is removed; one that is missing or has files is no error",
        arguments: StorageDoor.Kind.allCases)
    func removedDirectory(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.storage.removeDirectory(door.path("d"))
            try door.storage.makeDirectory(door.path("d/e"))
            try door.put("d/a")
            try door.storage.removeDirectory(door.path("d"))
            #expect(try door.storage.names(in: door.path("d")).sorted() == [".", "..", "a", "e"])
            try door.storage.remove(door.path("d/a"))
            try door.storage.removeDirectory(door.path("d"))
            #expect(try door.status(of: "d")?.kind == .directory)
            try door.storage.removeDirectory(door.path("d/e"))
            try door.storage.removeDirectory(door.path("d"))
            #expect(try door.status(of: "d") == nil)
            try door.put("f")
            await door.expectError(ENOTDIR, .isDirectory, of: "rmdir", "f") {
                try door.storage.removeDirectory(door.path("f"))
            }
            #expect(try door.status(of: "f")?.kind == .file)
        }
    }

    @Test(
        "A directory lists its own names, and itself and its parent, as readdir does",
        arguments: StorageDoor.Kind.allCases)
    func listed(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.storage.makeDirectory(door.path("d"))
            for name in ["b", "a", "d/c"] { try door.put(name) }
            try door.put("gone")
            try door.storage.remove(door.path("gone"))
            #expect(try door.storage.names(in: door.directory).sorted() == [".", "..", "a", "b", "d"])
            #expect(try door.storage.names(in: door.path("d")).sorted() == [".", "..", "c"])
            try door.storage.rename(door.path("d/c"), to: door.path("e"), replacing: false)
            #expect(try door.storage.names(in: door.path("d")).sorted() == [".", ".."])
        }
    }

    @Test(
        "A directory is no file: it is neither read, written, replaced nor removed",
        arguments: StorageDoor.Kind.allCases)
    func directory(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.storage.makeDirectory(door.path("d"))
            try door.put("a", [1])
            await door.expectError(EISDIR, .isDirectory, of: "open", "d") {
                try door.storage.open(door.path("d"), .update)
            }
            await door.expectError(EEXIST, .exists, of: "open", "d") { try door.storage.open(door.path("d"), .create) }
            // One implementation refuses to open it for reading, the other to read it.
            let found = await condition {
                let file = try door.storage.open(door.path("d"), .read)
                defer { file.close() }
                return try file.bytes(1, at: 0)
            }
            #expect(found == .isDirectory)
            await door.expectError(EISDIR, .isDirectory, of: "unlink", "d") {
                try door.storage.remove(door.path("d"))
            }
            await door.expectError(EISDIR, .isDirectory, of: "rename", "d") {
                try door.storage.rename(door.path("a"), to: door.path("d"), replacing: true)
            }
            await door.expectError(EEXIST, .exists, of: "rename", "d") {
                try door.storage.rename(door.path("a"), to: door.path("d"), replacing: false)
            }
            #expect(try door.contents(of: "a") == [1] && door.status(of: "d")?.kind == .directory)
        }
    }

    @Test("A file is no directory: nothing is below it", arguments: StorageDoor.Kind.allCases)
    func file(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            try door.put("a", [1])
            await door.expectError(ENOTDIR, .isDirectory, of: "lstat", "a/b") { try door.status(of: "a/b") }
            await door.expectError(ENOTDIR, .isDirectory, of: "open", "a/b") { try door.put("a/b") }
            await door.expectError(ENOTDIR, .isDirectory, of: "opendir", "a") {
                try door.storage.names(in: door.path("a"))
            }
            await door.expectError(EEXIST, .exists, of: "mkdir", "a") { try door.storage.makeDirectory(door.path("a")) }
            await door.expectError(ENOTDIR, .isDirectory, of: "stat", "a/b") {
                try door.storage.makeDirectory(door.path("a/b"))
            }
        }
    }

    @Test("A directory that does not exist is not found", arguments: StorageDoor.Kind.allCases)
    func missingDirectory(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let path = door.path("none")
            await door.expectError(ENOENT, .notFound, of: "opendir", "none") { try door.storage.names(in: path) }
            await door.expectError(ENOENT, .notFound, of: "access", "none") {
                try door.storage.checkWritable(directory: path)
            }
            await door.expectError(ENOENT, .notFound, of: "statvfs", "none") {
                try door.storage.freeSpace(in: path)
            }
        }
    }

    @Test("A disk has less free space than can be counted", arguments: StorageDoor.Kind.allCases)
    func freeSpace(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let free = try door.storage.freeSpace(in: door.directory)
            #expect(free >= 0 && free < .max)
            try door.storage.checkWritable(directory: door.directory)
        }
    }

    @Test("A name of more than 255 bytes is too long for every call", arguments: StorageDoor.Kind.allCases)
    func longName(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let (fits, long) = (String(repeating: "x", count: 255), String(repeating: "ü", count: 128))
            try door.put(fits, [1])
            #expect(try door.contents(of: fits) == [1])
            await door.expectError(ENAMETOOLONG, .nameTooLong, of: "open", long) { try door.put(long) }
            await door.expectError(ENAMETOOLONG, .nameTooLong, of: "lstat", long) { try door.status(of: long) }
            await door.expectError(ENAMETOOLONG, .nameTooLong, of: "rename", long) {
                try door.storage.rename(door.path(fits), to: door.path(long), replacing: false)
            }
        }
    }
}
