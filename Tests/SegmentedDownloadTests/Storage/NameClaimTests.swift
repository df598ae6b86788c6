import Foundation
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// How a file gets its name where the file system cannot rename without replacing.
@Suite("Claiming a name")
struct NameClaimTests {
    private static let place = "rename over " + WatchedPart.partName + " to file.bin"

    /// Runs `body` with a part of ten bytes that is open and locked.
    private static func run(_ body: (WatchedPart) async throws -> Void) async throws {
        try await WatchedPart.run { subject in
            #expect(try subject.part.file.tryLock() == .taken)
            subject.disk.linkFacts[try subject.part.file.status().device] = false
            try subject.write(0..<10)
            _ = subject.disk.take()
            try await body(subject)
            subject.part.close()
            #expect(subject.disk.openNames.isEmpty)
        }
    }

    @Test("A durable note comes first, then the empty file, then the part over it", arguments: [false, true])
    func order(isDurable: Bool) async throws {
        try await Self.run { subject in
            try await subject.disk.place(subject.paths, claiming: subject.paths, isDurable: isDurable)
            #expect(
                subject.disk.take()
                    == ["create privately " + WatchedPart.draftName, "write " + WatchedPart.draftName]
                    + (isDurable ? ["sync all of " + WatchedPart.draftName, "sync names"] : [])
                    + ["create file.bin", Self.place])
            #expect(try subject.contents(of: subject.paths.destination) == WatchedPart.bytes(0..<10))
            // The note goes with the manifest.
            #expect(try subject.disk.isManifest(subject.paths.manifestDraft) == true)
            try subject.disk.removeManifests(subject.paths)
            #expect(!subject.exists(subject.paths.manifestDraft))
        }
    }

    @Test("A name that is taken stays as it is, and the note goes")
    func taken() async throws {
        try await Self.run { subject in
            try subject.put("mine", at: subject.paths.destination)
            let paths = subject.paths
            #expect(
                await condition { try await subject.disk.place(paths, claiming: paths, isDurable: false) } == .exists)
            #expect(try subject.contents(of: paths.destination) == Array("mine".utf8))
            #expect(subject.exists(paths.part) && !subject.exists(paths.manifestDraft))
        }
    }

    @Test("A part that cannot be renamed leaves no empty file and no note", arguments: [false, true])
    func failedRename(isReplaced: Bool) async throws {
        try await Self.run { subject in
            let paths = subject.paths
            subject.disk.fail(Self.place, .other)
            if isReplaced { subject.disk.before(Self.place) { try subject.put("mine", at: paths.destination) } }
            #expect(
                await condition { try await subject.disk.place(paths, claiming: paths, isDurable: false) } == .other)
            // What another program wrote there stays.
            #expect(subject.exists(paths.destination) == isReplaced)
            #expect(subject.exists(paths.part) && !subject.exists(paths.manifestDraft))
        }
    }

    @Test("A note that cannot be written or synced claims nothing")
    func failedNote() async throws {
        for call in ["write " + WatchedPart.draftName, "sync all of " + WatchedPart.draftName, "sync names"] {
            try await Self.run { subject in
                let paths = subject.paths
                subject.disk.fail(call, .noSpace)
                #expect(
                    await condition { try await subject.disk.place(paths, claiming: paths, isDurable: true) }
                        == .noSpace)
                #expect(!subject.exists(paths.destination) && !subject.exists(paths.manifestDraft))
            }
        }
    }

    @Test("Another file under the name the note needs stays")
    func foreignNote() async throws {
        try await Self.run { subject in
            let paths = subject.paths
            try subject.put("my own notes", at: paths.manifestDraft)
            #expect(
                await condition { try await subject.disk.place(paths, claiming: paths, isDurable: false) } == .exists)
            #expect(subject.exists(paths.manifestDraft) && !subject.exists(paths.destination))
        }
    }

    @Test("An empty file that is replaced by another before the rename is not replaced in turn")
    func overtaken() async throws {
        for content in ["", "mine"] {
            try await Self.run { subject in
                let paths = subject.paths
                try subject.put(content, at: paths.destination + "2")
                subject.disk.before("look at file.bin") { _ = rename(paths.destination + "2", paths.destination) }
                #expect(
                    await condition { try await subject.disk.place(paths, claiming: paths, isDurable: false) }
                        == .exists)
                #expect(try subject.contents(of: paths.destination) == Array(content.utf8))
                #expect(subject.exists(paths.part))
            }
        }
    }

    @Test("An empty file that another program writes to before the rename is not replaced")
    func written() async throws {
        try await Self.run { subject in
            let paths = subject.paths
            subject.disk.before("look at file.bin") {
                let file = try FileHandle(forWritingTo: URL(fileURLWithPath: paths.destination))
                try file.write(contentsOf: Data("mine".utf8))
                try file.close()
            }
            #expect(
                await condition { try await subject.disk.place(paths, claiming: paths, isDurable: false) } == .exists)
            let bytes = try subject.contents(of: paths.destination)
            #expect(bytes == Array("mine".utf8))
        }
    }

    // MARK: After a crash

    /// Runs `body` with what a crash between the empty file and the rename leaves.
    private static func afterCrash(
        of name: String = "file.bin", _ body: (WatchedPart) async throws -> Void
    ) async throws {
        try await WatchedPart.run { subject in
            try subject.put("", at: subject.paths.destination)
            try subject.put("SEGDLMAN", at: subject.paths.manifest)
            try Data(ManifestCodec.magic + [0xFF, 0xFF] + Array("claims \(name)\n".utf8))
                .write(to: URL(fileURLWithPath: subject.paths.manifestDraft))
            for path in [subject.paths.manifestDraft, subject.paths.part] {
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            }
            subject.part.close()
            _ = subject.disk.take()
            try await body(subject)
            #expect(subject.disk.openNames.isEmpty)
        }
    }

    private static let abandoned = ["remove file.bin", "remove " + WatchedPart.draftName]

    @Test("The empty file and the note of a run that ended too early are removed, in this order")
    func abandons() async throws {
        try await Self.afterCrash { subject in
            try subject.disk.removeAbandonedClaim(subject.paths)
            #expect(subject.disk.take() == Self.abandoned)
            try subject.disk.removeAbandonedClaim(subject.paths)
            #expect(subject.disk.take().isEmpty)
        }
    }

    @Test("The empty files that links were tried with go with the note, whether they are one file or two")
    func trials() async throws {
        for isOneFile in [false, true] {
            try await Self.afterCrash { subject in
                let trials = LinkFacts.trials(beside: subject.paths.part)
                try subject.put("", at: trials[0])
                if isOneFile {
                    try FileManager.default.linkItem(atPath: trials[0], toPath: trials[1])
                } else {
                    try subject.put("", at: trials[1])
                }
                try subject.disk.removeAbandonedClaim(subject.paths)
                #expect(
                    !subject.exists(trials[0]) && !subject.exists(trials[1])
                        && !subject.exists(subject.paths.manifestDraft))
            }
        }
    }

    @Test("A file with content under the name of such an empty file stays")
    func foreignTrial() async throws {
        try await Self.afterCrash { subject in
            let trials = LinkFacts.trials(beside: subject.paths.part)
            try subject.put("mine", at: trials[1])
            try subject.disk.removeAbandonedClaim(subject.paths)
            #expect(try subject.contents(of: trials[1]) == Array("mine".utf8))
        }
    }

    @Test("A note may claim another name of the same directory, and no path")
    func otherName() async throws {
        for (name, isClaim) in [("other.1.bin", true), ("../other.1.bin", false), ("", false)] {
            try await Self.afterCrash(of: name) { subject in
                let other = subject.paths.directory + "/other.1.bin"
                try subject.put("", at: other)
                try subject.disk.removeAbandonedClaim(subject.paths)
                #expect(subject.exists(other) == !isClaim && subject.exists(subject.paths.destination))
                #expect(subject.exists(subject.paths.manifestDraft) == !isClaim)
            }
        }
    }

    @Test("A file with content, with another name or of another kind is no claim, though a note names it")
    func noClaim() async throws {
        for change in [
            { try Data("x".utf8).write(to: URL(fileURLWithPath: $0)) },
            { try FileManager.default.linkItem(atPath: $0, toPath: $0 + "2") },
            {
                try FileManager.default.removeItem(atPath: $0)
                try FileManager.default.createSymbolicLink(atPath: $0, withDestinationPath: "elsewhere")
            },
        ] as [(String) throws -> Void] {
            try await Self.afterCrash { subject in
                try change(subject.paths.destination)
                try subject.disk.removeAbandonedClaim(subject.paths)
                #expect(subject.disk.take() == ["remove " + WatchedPart.draftName])
            }
        }
    }

    @Test("Without a note of the user's own an empty file is not ours")
    func noNote() async throws {
        let text = { (bytes: [UInt8]) in { (path: String) in try Data(bytes).write(to: URL(fileURLWithPath: path)) } }
        let mark = ManifestCodec.magic + [0xFF, 0xFF] + Array("claims ".utf8)
        for change in [
            { try FileManager.default.removeItem(atPath: $0) },
            // Of another version, cut off, and longer than any note.
            text(ManifestCodec.magic + [3, 0] + Array("claims file.bin\n".utf8)), text(mark + Array("file.bin".utf8)),
            text(mark + Array("file.bin\n".utf8) + [UInt8](repeating: 10, count: 4096)),
            { try FileManager.default.setAttributes([.posixPermissions: 0o622], ofItemAtPath: $0) },
        ] as [(String) throws -> Void] {
            try await Self.afterCrash { subject in
                try change(subject.paths.manifestDraft)
                try subject.disk.removeAbandonedClaim(subject.paths)
                #expect(subject.disk.take().isEmpty && subject.exists(subject.paths.destination))
            }
        }
    }

    @Test("A note that may not be read, or goes before it is opened, is none; other failures are reported")
    func unreadableNote() async throws {
        for (failure, isReported) in [(.permission, false), (.notFound, false), (.other, true)]
            as [(StorageError.Condition, Bool)]
        {
            try await Self.afterCrash { subject in
                subject.disk.fail("open " + WatchedPart.draftName, failure)
                let found = await condition { try subject.disk.removeAbandonedClaim(subject.paths) }
                #expect(found == (isReported ? failure : nil))
                #expect(subject.disk.take().isEmpty)
            }
        }
    }

    @Test("Without a part of the user's own, or while another process holds it, nothing is touched")
    func noPart() async throws {
        for change in [
            { try FileManager.default.removeItem(atPath: $0) },
            { try FileManager.default.setAttributes([.posixPermissions: 0o620], ofItemAtPath: $0) },
            {
                try FileManager.default.removeItem(atPath: $0)
                try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: false)
            },
        ] as [(String) throws -> Void] {
            try await Self.afterCrash { subject in
                try change(subject.paths.part)
                try subject.disk.removeAbandonedClaim(subject.paths)
                #expect(subject.disk.take().isEmpty)
            }
        }
        try await Self.afterCrash { subject in
            let holder = try subject.disk.open(subject.paths.part, .update)
            #expect(try holder.tryLock() == .taken)
            try subject.disk.removeAbandonedClaim(subject.paths)
            #expect(subject.disk.take().isEmpty)
            holder.close()
        }
    }

    @Test("A part that another process puts in place before it is locked is not this one")
    func otherPart() async throws {
        try await Self.afterCrash { subject in
            try subject.put("new", at: subject.paths.part + "2")
            let path = subject.paths.part
            subject.disk.before("lock " + WatchedPart.partName) { _ = rename(path + "2", path) }
            try subject.disk.removeAbandonedClaim(subject.paths)
            #expect(subject.disk.take().isEmpty)
        }
    }
}
