import Foundation
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// How a part of another file gives way to a new download, and comes back or goes.
@Suite("Setting a part aside")
struct SetAsideTests {
    private static let oldPart = "file.bin.segdl-old.segdl-part"
    private static let oldManifest = "file.bin.segdl-old.segdl"

    /// Runs `body` with an interrupted download of 100 bytes, closed.
    private static func run(_ body: (WatchedPart) async throws -> Void) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<50)
            _ = try await subject.part.checkpoint(isPause: true)
            subject.part.close()
            _ = subject.disk.take()
            try await body(subject)
            #expect(subject.disk.openNames.isEmpty)
        }
    }

    @Test("The part has a durable manifest beside it at every moment")
    func setsAside() async throws {
        try await Self.run { subject in
            let manifest = try subject.contents(of: subject.paths.manifest)
            let part = try subject.contents(of: subject.paths.part)
            #expect(try await subject.disk.setAside(subject.paths))
            #expect(
                subject.disk.take() == [
                    "create privately " + Self.oldManifest, "write " + Self.oldManifest,
                    "sync all of " + Self.oldManifest, "sync names",
                    "rename " + WatchedPart.partName + " to " + Self.oldPart, "sync names",
                    "remove " + WatchedPart.manifestName,
                ])
            let aside = subject.paths.setAside
            #expect(try subject.contents(of: aside.manifest) == manifest)
            #expect(try subject.contents(of: aside.part) == part)
            #expect(!subject.exists(subject.paths.part) && !subject.exists(subject.paths.manifest))
        }
    }

    @Test("A part that was set aside before stays, and so does one whose manifest is none")
    func stays() async throws {
        try await Self.run { subject in
            try subject.put("older", at: subject.paths.setAside.part)
            #expect(try await !subject.disk.setAside(subject.paths))
            #expect(subject.disk.take().isEmpty)
            try FileManager.default.removeItem(atPath: subject.paths.setAside.part)
            try subject.put("my own notes", at: subject.paths.setAside.manifest)
            #expect(try await !subject.disk.setAside(subject.paths))
            #expect(subject.disk.take().isEmpty)
            try FileManager.default.removeItem(atPath: subject.paths.setAside.manifest)
            try FileManager.default.removeItem(atPath: subject.paths.manifest)
            #expect(try await !subject.disk.setAside(subject.paths))
            #expect(subject.disk.take().isEmpty && subject.exists(subject.paths.part))
        }
    }

    @Test("A manifest that a crash left of an earlier move is replaced")
    func leftover() async throws {
        try await Self.run { subject in
            try subject.put("SEGDLMAN", at: subject.paths.setAside.manifest)
            #expect(try await subject.disk.setAside(subject.paths))
            #expect(subject.disk.take().first == "remove " + Self.oldManifest)
            #expect(subject.exists(subject.paths.setAside.part))
        }
    }

    @Test("Where the longer name is too long the part is given up instead")
    func longName() async throws {
        try await Self.run { subject in
            subject.disk.fail("look at " + Self.oldPart, .nameTooLong)
            let isAside = try await subject.disk.setAside(subject.paths)
            #expect(!isAside)
            subject.disk.fail("look at " + Self.oldPart, .permission)
            #expect(await condition { try await subject.disk.setAside(subject.paths) } == .permission)
        }
    }

    @Test("A move that fails midway is undone: part and manifest have their own names, and no others")
    func undone() async throws {
        for call in [
            "create privately " + Self.oldManifest, "write " + Self.oldManifest, "sync all of " + Self.oldManifest,
            "rename " + WatchedPart.partName + " to " + Self.oldPart, "remove " + WatchedPart.manifestName,
        ] {
            try await Self.run { subject in
                subject.disk.fail(call, .other)
                #expect(await condition { try await subject.disk.setAside(subject.paths) } == .other, "\(call)")
                let aside = subject.paths.setAside
                #expect(!subject.exists(aside.part) && !subject.exists(aside.manifest), "\(call)")
                #expect(subject.exists(subject.paths.part), "\(call)")
                let manifest = try subject.manifest()
                #expect(manifest?.durable == [WatchedPart.claim(0..<50)], "\(call)")
            }
        }
    }

    @Test("Names that cannot be synced after the move are taken back")
    func unsyncedNames() async throws {
        try await Self.run { subject in
            // The second sync, and all later calls.
            subject.disk.before("rename " + WatchedPart.partName + " to " + Self.oldPart) {
                subject.disk.fail("sync names", .other)
            }
            #expect(await condition { try await subject.disk.setAside(subject.paths) } == .other)
            let aside = subject.paths.setAside
            #expect(!subject.exists(aside.part) && !subject.exists(aside.manifest))
            #expect(subject.exists(subject.paths.part) && subject.exists(subject.paths.manifest))
        }
    }

    @Test("Where a rename cannot spare what it replaces, the name is known to be free")
    func plainRename() async throws {
        try await Self.run { subject in
            let names = WatchedPart.partName + " to " + Self.oldPart
            subject.disk.fail("rename " + names, .unsupported)
            let isAside = try await subject.disk.setAside(subject.paths)
            #expect(isAside)
            #expect(subject.disk.take().contains("rename over " + names))
            #expect(subject.exists(subject.paths.setAside.part))
        }
    }

    @Test("What was set aside comes back under its own names, unless these are taken", arguments: [false, true])
    func comesBack(isTaken: Bool) async throws {
        try await Self.run { subject in
            let part = try subject.contents(of: subject.paths.part)
            #expect(try await subject.disk.setAside(subject.paths))
            if isTaken { try subject.put("new", at: subject.paths.part) }
            try await subject.disk.restoreSetAside(subject.paths)
            #expect(try subject.contents(of: subject.paths.part) == (isTaken ? Array("new".utf8) : part))
            #expect(subject.exists(subject.paths.manifest) == !isTaken)
            #expect(subject.exists(subject.paths.setAside.part) == isTaken)
            #expect(subject.exists(subject.paths.setAside.manifest) == isTaken)
        }
    }

    // MARK: Deleting it

    @Test("What was set aside is deleted with its manifest last")
    func deleted() async throws {
        try await Self.run { subject in
            #expect(try await subject.disk.setAside(subject.paths))
            _ = subject.disk.take()
            try subject.disk.removeSetAside(of: subject.paths)
            #expect(subject.disk.take() == ["remove " + Self.oldPart, "remove " + Self.oldManifest])
        }
    }

    @Test("A manifest alone is deleted, and a part alone is left: nothing says whose it is")
    func alone() async throws {
        try await Self.run { subject in
            let aside = subject.paths.setAside
            try subject.put("SEGDLMAN", at: aside.manifest)
            try subject.disk.removeSetAside(of: subject.paths)
            #expect(subject.disk.take() == ["remove " + Self.oldManifest])
            try subject.put("old bytes", at: aside.part)
            try subject.disk.removeSetAside(of: subject.paths)
            #expect(subject.disk.take().isEmpty && subject.exists(aside.part))
        }
    }

    @Test("What is not the user's own, is in use or is no file is left alone")
    func leftAlone() async throws {
        try await Self.run { subject in
            #expect(try await subject.disk.setAside(subject.paths))
            _ = subject.disk.take()
            let aside = subject.paths.setAside
            subject.disk.user += 1
            try subject.disk.removeSetAside(of: subject.paths)
            subject.disk.user -= 1
            let holder = try subject.disk.open(aside.part, .update)
            #expect(try holder.tryLock() == .taken)
            try subject.disk.removeSetAside(of: subject.paths)
            holder.close()
            #expect(subject.disk.take().isEmpty)
            try FileManager.default.removeItem(atPath: aside.part)
            try FileManager.default.createDirectory(atPath: aside.part, withIntermediateDirectories: false)
            try subject.disk.removeSetAside(of: subject.paths)
            #expect(subject.disk.take().isEmpty && subject.exists(aside.manifest))
        }
    }

    @Test("A part that another process puts in its place before it is locked is left alone")
    func replaced() async throws {
        try await Self.run { subject in
            #expect(try await subject.disk.setAside(subject.paths))
            _ = subject.disk.take()
            let aside = subject.paths.setAside
            try subject.put("new", at: aside.part + "2")
            subject.disk.before("lock " + Self.oldPart) {
                _ = rename(aside.part + "2", aside.part)
            }
            try subject.disk.removeSetAside(of: subject.paths)
            #expect(subject.disk.take().isEmpty && subject.exists(aside.part))
        }
    }

    @Test("Where no name can be that long nothing was set aside")
    func noLongName() async throws {
        try await Self.run { subject in
            subject.disk.fail("look at " + Self.oldManifest, .nameTooLong)
            try subject.disk.removeSetAside(of: subject.paths)
            subject.disk.fail("look at " + Self.oldManifest, .permission)
            #expect(await condition { try subject.disk.removeSetAside(of: subject.paths) } == .permission)
        }
    }
}
