import Foundation
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#endif

@Suite("A storage that is confined to a directory")
struct StorageRootTests {
    /// The storage of a real disk, confined to the directory `root` of the door's.
    private static func run(_ body: @escaping @Sendable (StorageDoor, any Storage) async throws -> Void) async throws {
        try await StorageDoor.run(.real) { door in
            for name in ["root", "root/in", "out"] { try door.storage.makeDirectory(door.path(name)) }
            symlink(door.path("out"), door.path("root/link"))
            symlink("in", door.path("root/inner"))
            try door.put("out/a", [1])
            try await body(door, door.storage.confined(to: door.path("root")))
        }
    }

    private static func names(in directory: String, _ door: StorageDoor) throws -> [String] {
        try door.storage.names(in: door.path(directory)).filter { ![".", ".."].contains($0) }
    }

    @Test("Everything works in the directory, and on the directory itself")
    func inside() async throws {
        try await Self.run { door, storage in
            try storage.makeDirectory(door.path("root/in/new/deep"))
            for directory in ["root", "root/in", "root/in/new/deep"] {
                let (a, b) = (door.path(directory + "/a"), door.path(directory + "/b"))
                let file = try storage.open(a, .create)
                defer { file.close() }
                try file.writeFully([1, 2, 3], at: 0)
                #expect(try storage.status(of: a)?.length == 3 && storage.target(of: a)?.length == 3)
                try storage.checkWritable(directory: door.path(directory))
                #expect(try storage.freeSpace(in: door.path(directory)) > 0)
                try storage.rename(a, to: b, replacing: false)
                #expect(throws: StorageError.self) { try storage.rename(a, to: b, replacing: true) }
                #expect(try storage.names(in: door.path(directory)).contains("b"))
                try await storage.synchronize(directory: door.path(directory))
                try storage.remove(b)
                try storage.remove(b)
                #expect(try storage.status(of: b) == nil)
            }
            #expect(try storage.target(of: door.path("root"))?.kind == .directory)
            #expect(try storage.status(of: door.path("root/missing/a")) == nil)
        }
    }

    @Test(
        "Nothing is read, created, renamed or removed elsewhere, and no link is followed",
        arguments: [
            "out", "rootless", "root/../out", "root/link", "root/inner", "root/in/../../out", "root/link/../../out",
        ])
    func outside(directory: String) async throws {
        try await Self.run { door, storage in
            try door.storage.makeDirectory(door.path("rootless"))
            try door.put("root/in/own", [7])
            let path = door.path(directory)
            let (file, own) = (path + "/a", door.path("root/in/own"))
            func refuses(_ what: String, _ body: () async throws -> Void) async {
                do {
                    try await body()
                    Issue.record("\(what) in \(directory) is possible")
                } catch let error as StorageError {
                    #expect(error.condition == .outside && error.failure.code == .policy, "\(what): \(error)")
                } catch {
                    Issue.record(error, "\(what)")
                }
            }
            for mode in [StorageOpenMode.read, .update, .create, .createPrivate, .append] {
                await refuses("open \(mode)") { _ = try storage.open(file, mode) }
            }
            await refuses("status") { _ = try storage.status(of: file) }
            await refuses("target") { _ = try storage.target(of: file) }
            await refuses("mkdir") { try storage.makeDirectory(path + "/new/deep") }
            await refuses("readdir") { _ = try storage.names(in: path) }
            await refuses("statvfs") { _ = try storage.freeSpace(in: path) }
            await refuses("fsync") { try await storage.synchronize(directory: path) }
            for replacing in [false, true] {
                await refuses("rename to") { try storage.rename(own, to: file, replacing: replacing) }
                await refuses("rename from") { try storage.rename(file, to: own, replacing: replacing) }
            }
            await refuses("unlink") { try storage.remove(file) }
            #expect(try door.contents(of: "out/a") == [1] && door.contents(of: "root/in/own") == [7])
            #expect(try Self.names(in: "out", door) == ["a"])
            #expect(try Self.names(in: "rootless", door).isEmpty)
        }
    }

    @Test("Paths are compared by their bytes")
    func bytes() async throws {
        try await StorageDoor.run(.real) { door in
            // The same text in two forms of Unicode, and a name that begins with a combining accent.
            let (composed, decomposed) = ("\u{E9}", "e\u{301}")
            for name in [composed, decomposed] { try door.storage.makeDirectory(door.path(name)) }
            let storage = door.storage.confined(to: door.path(composed))
            #expect(throws: StorageError.self) { try storage.makeDirectory(door.path(decomposed + "/in")) }
            #expect(throws: StorageError.self) { try storage.names(in: door.path(decomposed)) }
            #expect(try Self.names(in: decomposed, door).isEmpty)
            let accented = door.path(composed + "/\u{301}a")
            try storage.makeDirectory(accented)
            let file = try storage.open(accented + "/f", .create)
            file.close()
            #expect(try storage.status(of: accented + "/f")?.kind == .file)
        }
    }

    @Test("The root may be missing, a link, or the root of all")
    func roots() async throws {
        try await Self.run { door, _ in
            for (root, directory) in [
                ("/", door.path("root/in")), (door.path("root/link"), door.path("root/link/new")),
            ] {
                let storage = door.storage.confined(to: root)
                try storage.makeDirectory(directory)
                let file = try storage.open(directory + "/f", .create)
                file.close()
                #expect(try storage.freeSpace(in: directory) > 0 && storage.status(of: directory + "/f") != nil)
            }
            let missing = door.path("missing/root")
            let storage = door.storage.confined(to: missing)
            #expect(try storage.status(of: missing + "/in/f") == nil)
            #expect(throws: StorageError.self) { try storage.status(of: door.path("out/a")) }
            try storage.makeDirectory(missing + "/in")
            #expect(try door.storage.status(of: missing + "/in")?.kind == .directory)
        }
    }

    @Test("A file on the way is an error of the same kind")
    func file() async throws {
        try await Self.run { door, storage in
            try door.put("root/plain", [1])
            #expect(await condition { _ = try storage.open(door.path("root/plain/a"), .create) } == .outside)
        }
    }

    @Test("A directory that is replaced by a link between two calls is not followed")
    func replaced() async throws {
        try await Self.run { door, storage in
            let part = try storage.open(door.path("root/in/part"), .create)
            part.close()
            try #require(Glibc.rename(door.path("root/in"), door.path("root/moved")) == 0)
            symlink(door.path("out"), door.path("root/in"))
            #expect(throws: StorageError.self) { try storage.open(door.path("root/in/b"), .create) }
            #expect(throws: StorageError.self) {
                try storage.rename(door.path("root/moved/part"), to: door.path("root/in/b"), replacing: true)
            }
            #expect(try Self.names(in: "out", door) == ["a"])
        }
    }
}
