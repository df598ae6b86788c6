import CLinux
import Foundation
import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

/// What is found of this program's among other people's files, and what of it may be deleted.
@Suite("OwnedFiles")
struct OwnedFilesTests {
    /// Runs `body` with an interrupted download beside other files.
    private static func run(_ body: (WatchedPart, OwnedFiles) async throws -> Void) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<50)
            _ = try await subject.part.checkpoint(isPause: true)
            subject.part.close()
            _ = subject.disk.take()
            try await body(subject, OwnedFiles(storage: subject.disk))
            #expect(subject.disk.openNames.isEmpty)
        }
    }

    private static func item(_ subject: WatchedPart) throws -> OwnedFiles.Item {
        .interrupted(
            subject.paths, part: try #require(try subject.disk.status(of: subject.paths.part)).allocated,
            manifest: try #require(try subject.disk.status(of: subject.paths.manifest)).length)
    }

    /// A finished file with a record of its own.
    private static func finish(_ name: String, in subject: WatchedPart, length: Int64 = 10) throws -> String {
        let path = subject.paths.directory + "/" + name
        let file = try subject.disk.open(path, .create)
        defer { file.close() }
        try file.writeFully(WatchedPart.bytes(0..<10), at: 0)
        let record = FinishedRecord(
            resource: WatchedPart.resource(length), length: length, crc: CRC32(of: WatchedPart.bytes(0..<10)),
            modified: try file.status().modified)
        #expect(try file.setAttribute(FinishedRecord.attribute, record.encoded))
        return path
    }

    @Test("Finished files and interrupted downloads are found by name, in all directories, and nothing else is")
    func listing() async throws {
        try await Self.run { subject, belongings in
            let directory = subject.paths.directory
            try FileManager.default.createDirectory(atPath: directory + "/sub", withIntermediateDirectories: false)
            let inner = try Self.finish("sub/inner.bin", in: subject)
            let finished = try Self.finish("a.bin", in: subject)
            _ = try Self.finish("shorter.bin", in: subject, length: 11)
            try subject.put("mine", at: directory + "/mine.bin")
            try subject.put("my own notes", at: directory + "/notes.segdl")
            try subject.put("mine", at: directory + "/.segdl")
            try FileManager.default.createSymbolicLink(
                atPath: directory + "/link.bin", withDestinationPath: "a.bin")
            let listing = try belongings.listing(of: directory)
            #expect(
                listing.items == [
                    .finished(path: finished, length: 10), try Self.item(subject), .finished(path: inner, length: 10),
                ])
            #expect(listing.problems.isEmpty)
        }
    }

    @Test("A directory that cannot be read is a problem, and no reason to stop; the first one is a failure")
    func unreadable() async throws {
        try await Self.run { subject, belongings in
            let directory = subject.paths.directory
            try FileManager.default.createDirectory(atPath: directory + "/a", withIntermediateDirectories: false)
            subject.disk.fail("list a", .permission)
            let listing = try belongings.listing(of: directory)
            #expect(listing.items.count == 1 && listing.problems.map(\.condition) == [.permission])
            #expect(await condition { try belongings.listing(of: directory + "/a") } == .permission)
        }
    }

    @Test("Directories are looked into 32 deep")
    func depth() async throws {
        try await Self.run { subject, belongings in
            var path = ""
            for _ in 0..<32 {
                path += "d/"
                try FileManager.default.createDirectory(
                    atPath: subject.paths.directory + "/" + path, withIntermediateDirectories: false)
            }
            _ = try Self.finish(path + "deep.bin", in: subject)
            let last = try Self.finish(String(path.dropLast(2)) + "last.bin", in: subject)
            let items = try belongings.listing(of: subject.paths.directory).items
            #expect(items.count == 2 && items.contains(.finished(path: last, length: 10)))
        }
    }

    @Test("A finished file is ours while it has the length and time that its record says, and one name")
    func finished() async throws {
        let changes: [((String) throws -> Void, Bool)] = [
            ({ _ in }, true),
            ({ try FileManager.default.linkItem(atPath: $0, toPath: $0 + "2") }, false),
            (
                {
                    try FileManager.default.setAttributes(
                        [.modificationDate: Date(timeIntervalSince1970: 1000)], ofItemAtPath: $0)
                }, false
            ),
        ]
        for (change, isOurs) in changes {
            try await Self.run { subject, belongings in
                let path = try Self.finish("a.bin", in: subject)
                try change(path)
                let items = try belongings.items(at: path)
                #expect(items == (isOurs ? [.finished(path: path, length: 10)] : []))
                let isDeleted = try belongings.delete(.finished(path: path, length: 10))
                #expect(isDeleted == isOurs && subject.exists(path) == !isOurs)
            }
        }
    }

    @Test("A file that was edited and got its time back is the user's: it is not deleted")
    func edited() async throws {
        try await Self.run { subject, belongings in
            let path = try Self.finish("a.bin", in: subject)
            var times = stat()
            _ = stat(path, &times)
            let file = try subject.disk.open(path, .update)
            try file.writeFully([0xFF], at: 5)
            file.close()
            _ = utimensat(AT_FDCWD, path, [times.st_atim, times.st_mtim], 0)
            let isDeleted = try belongings.delete(.finished(path: path, length: 10))
            #expect(!isDeleted && subject.exists(path))
        }
    }

    @Test("A file that is replaced while it is read is not deleted")
    func replacedMeanwhile() async throws {
        try await Self.run { subject, belongings in
            let path = try Self.finish("a.bin", in: subject)
            try subject.put("mine", at: path + "2")
            subject.disk.before("read a.bin") { _ = rename(path + "2", path) }
            let isDeleted = try belongings.delete(.finished(path: path, length: 10))
            #expect(!isDeleted && subject.exists(path))
        }
    }

    @Test("A file that may not be read, or is gone meanwhile, is not ours; another failure is reported")
    func unreadableFile() async throws {
        try await Self.run { subject, belongings in
            let path = try Self.finish("a.bin", in: subject)
            for (failure, isReported) in [(.permission, false), (.notFound, false), (.other, true)]
                as [(StorageError.Condition, Bool)]
            {
                subject.disk.fail("open a.bin", failure)
                let found = await condition { try belongings.items(at: path) }
                #expect(found == (isReported ? failure : nil))
            }
        }
    }

    @Test("An interrupted download is deleted whole: the part first, then its manifest")
    func deleted() async throws {
        try await Self.run { subject, belongings in
            let item = try Self.item(subject)
            #expect(try belongings.items(at: subject.paths.destination) == [item])
            let isDeleted = try belongings.delete(item)
            #expect(isDeleted)
            #expect(
                subject.disk.take() == ["remove " + WatchedPart.partName, "remove " + WatchedPart.manifestName])
            #expect(try belongings.items(at: subject.paths.destination).isEmpty)
            let again = try belongings.delete(item)
            #expect(!again)
        }
    }

    @Test("A part that is in use, is another file than the manifest's, or has another name, is left alone")
    func leftAlone() async throws {
        try await Self.run { subject, belongings in
            let item = try Self.item(subject)
            let holder = try subject.disk.open(subject.paths.part, .update)
            #expect(try holder.tryLock() == .taken)
            var isDeleted = try belongings.delete(item)
            #expect(!isDeleted)
            holder.close()
            try FileManager.default.linkItem(atPath: subject.paths.part, toPath: subject.paths.part + "2")
            isDeleted = try belongings.delete(item)
            #expect(try !isDeleted && belongings.items(at: subject.paths.destination).isEmpty)
            try FileManager.default.removeItem(atPath: subject.paths.part)
            try FileManager.default.copyItem(atPath: subject.paths.part + "2", toPath: subject.paths.part)
            isDeleted = try belongings.delete(item)
            #expect(try !isDeleted && belongings.items(at: subject.paths.destination).isEmpty)
            #expect(subject.disk.take().isEmpty && subject.exists(subject.paths.manifest))
        }
    }

    @Test("Where there are no locks nothing is deleted: another process may be at it")
    func unlocked() async throws {
        try await Self.run { subject, belongings in
            subject.disk.setLock(.unsupported)
            let item = try Self.item(subject)
            #expect(await condition { try belongings.delete(item) } == .unsupported)
            #expect(subject.exists(subject.paths.part))
        }
    }

    @Test("A part that is replaced before it is locked is not deleted")
    func replaced() async throws {
        try await Self.run { subject, belongings in
            let item = try Self.item(subject)
            let path = subject.paths.part
            try FileManager.default.copyItem(atPath: path, toPath: path + "2")
            subject.disk.before("lock " + WatchedPart.partName) { _ = rename(path + "2", path) }
            let isDeleted = try belongings.delete(item)
            #expect(!isDeleted && subject.exists(path) && subject.disk.take().isEmpty)
        }
    }

    @Test("A download that another process began under the same name before the part was locked is not deleted")
    func replacedWhole() async throws {
        try await Self.run { subject, belongings in
            let item = try Self.item(subject)
            let other = DestinationPaths(directory: subject.paths.directory, name: "other.bin")
            let part = PartialFile(
                other, file: try subject.disk.open(other.part, .create), storage: subject.disk)
            let next = WatchedPart(disk: subject.disk, paths: other, part: part)
            try await next.begin(100)
            try next.fill(0..<50)
            _ = try await part.checkpoint(isPause: true)
            part.close()
            _ = subject.disk.take()
            let paths = subject.paths
            subject.disk.before("lock " + WatchedPart.partName) {
                _ = rename(other.part, paths.part)
                _ = rename(other.manifest, paths.manifest)
            }
            let isDeleted = try belongings.delete(item)
            #expect(!isDeleted && subject.disk.take().isEmpty)
            #expect(subject.exists(paths.part) && subject.exists(paths.manifest))
        }
    }

    @Test("A manifest that another process writes once the part is gone stays")
    func newManifest() async throws {
        try await Self.run { subject, belongings in
            let item = try Self.item(subject)
            let path = subject.paths.manifest
            try FileManager.default.copyItem(atPath: path, toPath: path + "2")
            subject.disk.before("remove " + WatchedPart.partName) { _ = rename(path + "2", path) }
            let isDeleted = try belongings.delete(item)
            #expect(isDeleted && subject.exists(path) && !subject.exists(subject.paths.part))
        }
    }

    @Test("A manifest whose part is gone is found and deleted by itself")
    func manifestAlone() async throws {
        try await Self.run { subject, belongings in
            try FileManager.default.removeItem(atPath: subject.paths.part)
            let length = try #require(try subject.disk.status(of: subject.paths.manifest)).length
            let item = OwnedFiles.Item.interrupted(subject.paths, part: 0, manifest: length)
            #expect(try belongings.items(at: subject.paths.destination) == [item])
            #expect(try belongings.lastWritten(subject.paths) > 0)
            let isDeleted = try belongings.delete(item)
            #expect(isDeleted && !subject.exists(subject.paths.manifest))
            let again = try belongings.delete(item)
            #expect(!again)
        }
    }

    @Test("A manifest that is none any more, or has a second name, is not deleted for one")
    func noManifest() async throws {
        try await Self.run { subject, belongings in
            try FileManager.default.removeItem(atPath: subject.paths.part)
            let item = OwnedFiles.Item.interrupted(subject.paths, part: 0, manifest: 1)
            try FileManager.default.linkItem(atPath: subject.paths.manifest, toPath: subject.paths.manifest + "2")
            var isDeleted = try belongings.delete(item)
            #expect(!isDeleted)
            try FileManager.default.removeItem(atPath: subject.paths.manifest)
            try subject.put("my own notes", at: subject.paths.manifest)
            isDeleted = try belongings.delete(item)
            #expect(!isDeleted && subject.exists(subject.paths.manifest))
        }
    }
}
