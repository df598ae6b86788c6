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

    /// The names that the part gets first.
    private static func aside(_ subject: WatchedPart) -> DestinationPaths { subject.paths.setAside(slot: 1) }

    private static func manifest(_ subject: WatchedPart, _ paths: DestinationPaths) throws -> Manifest {
        try ManifestCodec.decode(subject.contents(of: paths.manifest))
    }

    @Test("The part has a durable manifest beside it at every moment")
    func setsAside() async throws {
        try await Self.run { subject in
            let manifest = try #require(try subject.manifest())
            let part = try subject.contents(of: subject.paths.part)
            #expect(try await subject.disk.setAside(subject.paths) == Self.aside(subject))
            #expect(
                subject.disk.take() == [
                    "create privately " + Self.oldManifest, "write " + Self.oldManifest,
                    "sync all of " + Self.oldManifest, "sync names",
                    "rename " + WatchedPart.partName + " to " + Self.oldPart, "sync names",
                    "remove " + WatchedPart.manifestName,
                ])
            let marked = try Self.manifest(subject, Self.aside(subject))
            #expect(marked.isSetAside && !manifest.isSetAside)
            #expect(marked.header == manifest.header && marked.durable == manifest.durable && marked.pending.isEmpty)
            #expect(marked.pausedModified == manifest.pausedModified && marked.pausedModified != nil)
            #expect(try subject.contents(of: Self.aside(subject).part) == part)
            #expect(!subject.exists(subject.paths.part) && !subject.exists(subject.paths.manifest))
        }
    }

    @Test("A part gets the first names that nothing has: no part, no finished file, and nothing of the user's")
    func firstFree() async throws {
        try await Self.run { subject in
            let slots = (1...DestinationPaths.setAsideMax).map { subject.paths.setAside(slot: $0) }
            #expect(slots[1].part == subject.paths.destination + ".segdl-old-2.segdl-part")
            try subject.put("older", at: slots[0].part)
            try subject.put("my own notes", at: slots[1].manifest)
            try subject.put("complete", at: slots[2].destination)
            #expect(try await subject.disk.setAside(subject.paths) == slots[3])
            #expect(try Self.manifest(subject, slots[3]).isSetAside && subject.exists(slots[3].part))
            #expect(try subject.contents(of: slots[0].part) == Array("older".utf8))
            #expect(try subject.contents(of: slots[1].manifest) == Array("my own notes".utf8))
        }
    }

    @Test("A part without a free name stays, and so does one whose manifest is none or cannot be read")
    func stays() async throws {
        try await Self.run { subject in
            let slots = (1...DestinationPaths.setAsideMax).map { subject.paths.setAside(slot: $0) }
            for slot in slots { try subject.put("older", at: slot.part) }
            #expect(try await subject.disk.setAside(subject.paths) == nil)
            #expect(subject.disk.take().isEmpty)
            for slot in slots { try FileManager.default.removeItem(atPath: slot.part) }
            for text in ["my own notes", "SEGDLMAN", nil] {
                try FileManager.default.removeItem(atPath: subject.paths.manifest)
                if let text { try subject.put(text, at: subject.paths.manifest) }
                #expect(try await subject.disk.setAside(subject.paths) == nil)
                #expect(subject.disk.take().isEmpty && subject.exists(subject.paths.part))
                #expect(!subject.exists(slots[0].manifest))
            }
        }
    }

    @Test("A manifest that a crash left of an earlier move is replaced")
    func leftover() async throws {
        try await Self.run { subject in
            try subject.put("SEGDLMAN", at: Self.aside(subject).manifest)
            #expect(try await subject.disk.setAside(subject.paths) == Self.aside(subject))
            #expect(subject.disk.take().first == "remove " + Self.oldManifest)
            #expect(subject.exists(Self.aside(subject).part))
        }
    }

    @Test("Where a longer name is too long the part stays")
    func longName() async throws {
        try await Self.run { subject in
            for name in [Self.oldPart, "file.bin.segdl-old"] {
                subject.disk.fail("look at " + name, .nameTooLong)
                #expect(try await subject.disk.setAside(subject.paths) == nil)
                subject.disk.fail("look at " + name, .permission)
                #expect(await condition { try await subject.disk.setAside(subject.paths) } == .permission)
                subject.disk.fail("look at " + name, nil)
            }
            // The second name is longer than the first.
            try subject.put("older", at: Self.aside(subject).part)
            subject.disk.fail("look at file.bin.segdl-old-2.segdl-part", .nameTooLong)
            #expect(try await subject.disk.setAside(subject.paths) == nil)
            #expect(subject.disk.take().isEmpty && subject.exists(subject.paths.part))
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
                let aside = Self.aside(subject)
                #expect(!subject.exists(aside.part) && !subject.exists(aside.manifest), "\(call)")
                #expect(subject.exists(subject.paths.part), "\(call)")
                let manifest = try #require(try subject.manifest())
                #expect(manifest.durable == [WatchedPart.claim(0..<50)] && !manifest.isSetAside, "\(call)")
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
            let aside = Self.aside(subject)
            #expect(!subject.exists(aside.part) && !subject.exists(aside.manifest))
            #expect(subject.exists(subject.paths.part) && subject.exists(subject.paths.manifest))
        }
    }

    @Test("Where a rename cannot spare what it replaces, and there are no links, the name is claimed first")
    func plainRename() async throws {
        try await Self.run { subject in
            let names = WatchedPart.partName + " to " + Self.oldPart
            subject.disk.fail("rename " + names, .unsupported)
            subject.disk.setLinks(.refused)
            let aside = try await subject.disk.setAside(subject.paths)
            #expect(aside == Self.aside(subject))
            #expect(subject.disk.take().contains("rename over " + names))
            #expect(subject.exists(Self.aside(subject).part))
        }
    }

    @Test("What was set aside comes back under its own names, unless these are taken", arguments: [false, true])
    func comesBack(isTaken: Bool) async throws {
        try await Self.run { subject in
            let (part, manifest) = (
                try subject.contents(of: subject.paths.part), try subject.contents(of: subject.paths.manifest)
            )
            let aside = try #require(try await subject.disk.setAside(subject.paths))
            if isTaken { try subject.put("new", at: subject.paths.part) }
            try await subject.disk.restoreSetAside(aside, to: subject.paths)
            #expect(try subject.contents(of: subject.paths.part) == (isTaken ? Array("new".utf8) : part))
            #expect(subject.exists(subject.paths.manifest) == !isTaken)
            #expect(subject.exists(aside.part) == isTaken && subject.exists(aside.manifest) == isTaken)
            // Without the mark.
            if !isTaken { #expect(try subject.contents(of: subject.paths.manifest) == manifest) }
        }
    }

    @Test("A part that is resumed is no longer one that was set aside")
    func resumed() async throws {
        try await Self.run { subject in
            let aside = try #require(try await subject.disk.setAside(subject.paths))
            let finding = try Surveyor(storage: subject.disk).survey(aside, policy: .verify)
            let part = try #require(finding.part)
            guard case .partial(let saved) = finding.survey else {
                Issue.record("the part is not found")
                return
            }
            // The pause before the mark counts: nothing is read back first.
            #expect(saved.missing == [50..<100] && part.readBack != nil)
            try await part.adopt(id: 8, resource: WatchedPart.resource(100), limit: nil, sources: [], digests: [])
            part.close()
            #expect(try !Self.manifest(subject, aside).isSetAside)
            _ = subject.disk.take()
            try subject.disk.removeSetAside(of: subject.paths)
            #expect(subject.disk.take().isEmpty && subject.exists(aside.part))
        }
    }

    // MARK: Deleting it

    /// Sets a part of each of so many URLs aside.
    private static func setAside(_ count: Int, _ subject: WatchedPart) async throws -> [DestinationPaths] {
        var all: [DestinationPaths] = []
        let bytes = try subject.contents(of: subject.paths.manifest)
        for _ in 0..<count {
            if !subject.exists(subject.paths.part) {
                try subject.put("another part", at: subject.paths.part)
                try Data(bytes).write(to: URL(fileURLWithPath: subject.paths.manifest))
            }
            all.append(try #require(try await subject.disk.setAside(subject.paths)))
        }
        _ = subject.disk.take()
        return all
    }

    @Test("What was set aside is deleted, each with its manifest last, and the first one last")
    func deleted() async throws {
        try await Self.run { subject in
            let all = try await Self.setAside(3, subject)
            #expect(all.map(\.name) == ["file.bin.segdl-old", "file.bin.segdl-old-2", "file.bin.segdl-old-3"])
            try subject.disk.removeSetAside(of: subject.paths)
            let names = all.reversed().flatMap { ["remove \($0.name).segdl-part", "remove \($0.name).segdl"] }
            #expect(subject.disk.take() == names)
        }
    }

    @Test("Another download of such a name stays, and so does a part that an earlier version set aside")
    func unmarked() async throws {
        try await Self.run { subject in
            let all = try await Self.setAside(2, subject)
            let manifest = try subject.contents(of: all[0].manifest)
            let unmarked = try #require(ManifestCodec.encoded(manifest, setAside: false))
            for bytes in [unmarked, Array(manifest.dropLast()), Array("SEGDLMAN".utf8)] {
                try Data(bytes).write(to: URL(fileURLWithPath: all[0].manifest))
                try subject.disk.removeSetAside(of: subject.paths)
                #expect(subject.exists(all[0].part) && subject.exists(all[0].manifest))
            }
            // The other one is found all the same.
            #expect(subject.disk.take() == ["remove \(all[1].name).segdl-part", "remove \(all[1].name).segdl"])
        }
    }

    @Test("A manifest alone is deleted, and a part alone is left: nothing says whose it is")
    func alone() async throws {
        try await Self.run { subject in
            let aside = Self.aside(subject)
            try subject.put("SEGDLMAN", at: aside.manifest)
            try subject.disk.removeSetAside(of: subject.paths)
            #expect(subject.disk.take() == ["remove " + Self.oldManifest])
            try subject.put("old bytes", at: aside.part)
            try subject.disk.removeSetAside(of: subject.paths)
            #expect(subject.disk.take().isEmpty && subject.exists(aside.part))
        }
    }

    @Test("The manifest of a file that is about to become a part is left alone")
    func becomesPart() async throws {
        try await Self.run { subject in
            let aside = Self.aside(subject)
            try subject.put("damaged", at: aside.destination)
            try subject.put("SEGDLMAN", at: aside.manifest)
            try subject.disk.removeSetAside(of: subject.paths)
            #expect(subject.disk.take().isEmpty && subject.exists(aside.manifest))
        }
    }

    @Test("What is not the user's own, is in use or is no file is left alone")
    func leftAlone() async throws {
        try await Self.run { subject in
            let aside = try #require(try await subject.disk.setAside(subject.paths))
            _ = subject.disk.take()
            subject.disk.user += 1
            try subject.disk.removeSetAside(of: subject.paths)
            subject.disk.user -= 1
            // A manifest that others may have written states nothing.
            try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: aside.manifest)
            try subject.disk.removeSetAside(of: subject.paths)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: aside.manifest)
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

    @Test("A part that another process puts in its place, or resumes, before it is locked is left alone")
    func replaced() async throws {
        for isResumed in [false, true] {
            try await Self.run { subject in
                let aside = try #require(try await subject.disk.setAside(subject.paths))
                _ = subject.disk.take()
                let manifest = try subject.contents(of: aside.manifest)
                let resumed = try #require(ManifestCodec.encoded(manifest, setAside: false))
                try subject.put("new", at: aside.part + "2")
                subject.disk.before("lock " + Self.oldPart) {
                    if isResumed {
                        try Data(resumed).write(to: URL(fileURLWithPath: aside.manifest))
                    } else {
                        _ = rename(aside.part + "2", aside.part)
                    }
                }
                try subject.disk.removeSetAside(of: subject.paths)
                #expect(subject.disk.take().isEmpty && subject.exists(aside.part))
            }
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
