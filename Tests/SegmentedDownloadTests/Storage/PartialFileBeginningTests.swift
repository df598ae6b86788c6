import Foundation
import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

/// How a part file is begun, and how one of an earlier run is continued.
@Suite("Beginning and continuing a part file")
struct PartialFileBeginningTests {
    @Test("A new part gets the file's length, by reserved space where the file system can reserve any")
    func length() async throws {
        for (allocates, canAllocate, calls) in [
            (true, true, ["allocate 100"]), (true, false, ["allocate 100", "truncate to 100"]),
            (false, true, ["truncate to 100"]),
        ] {
            try await WatchedPart.run { subject in
                if !canAllocate { subject.disk.forbidAllocation() }
                try await subject.part.begin(
                    WatchedPart.resource(100), id: 7, sources: [], digests: [], allocates: allocates)
                #expect(
                    subject.disk.take() == (["truncate to 0"] + calls).map { $0 + " " + WatchedPart.partName })
                #expect(try subject.part.file.status().length == 100)
            }
        }
    }

    @Test("A part of unknown length, or of none, gets no space and never a manifest", arguments: [nil, 0] as [Int64?])
    func noLength(length: Int64?) async throws {
        try await WatchedPart.run { subject in
            try await subject.part.begin(
                WatchedPart.resource(length), id: 7, sources: [], digests: [], allocates: true, hasSetAside: true)
            #expect(subject.disk.take() == ["truncate to 0 " + WatchedPart.partName])
            if length == nil { try subject.fill(0..<10) }
            #expect(try await subject.part.checkpoint(isPause: true) == 0)
            #expect(try subject.manifest() == nil)
            #expect(subject.part.header.completeLength == 0)
        }
    }

    @Test("A manifest is written at once for a file above 8 MiB, and for any file another part was set aside for")
    func immediateManifest() async throws {
        for (length, hasSetAside, isImmediate) in [
            (8 << 20, false, false), (8 << 20 + 1, false, true), (1, true, true),
        ] as [(Int64, Bool, Bool)] {
            try await WatchedPart.run { subject in
                try await subject.begin(length, hasSetAside: hasSetAside)
                let manifest = try subject.manifest()
                #expect((manifest != nil) == isImmediate)
                #expect(manifest.map { $0.durable.isEmpty && $0.pending.isEmpty && !$0.isRejected } != false)
            }
        }
    }

    @Test("A disk that keeps nothing gets no manifest")
    func keepsNothing() async throws {
        try await WatchedPart.run(on: WatchedStorage(keepsFiles: false)) { subject in
            try await subject.begin(9 << 20)
            try subject.fill(0..<10)
            #expect(try await subject.part.checkpoint(isPause: true) == 0)
            #expect(try subject.manifest() == nil)
        }
    }

    @Test("A manifest's header names the part, the boot, the sources, the digests and the label")
    func header() async throws {
        try await WatchedPart.run { subject in
            let label = Manifest.Label(id: "name", priority: 0.25, userInfo: ["key": "value"])
            let pieces = PieceDigests(length: 60, algorithm: .crc32, hexes: ["00000000", "ffffffff"])
            let selection = RequestSelection(["accept-language": "de"], salt: 7)
            subject.part.describe(UserStatements(label: label, pieces: pieces, selection: selection))
            let digest = "sha1=da39a3ee5e6b4b0d3255bfef95601890afd80709"
            try await subject.part.begin(
                WatchedPart.resource(100), id: 7, sources: ["http://a/", "*http://b/"], digests: [digest],
                allocates: true, hasSetAside: true)
            let status = try subject.part.file.status()
            #expect(
                try subject.manifest()?.header
                    == Manifest.Header(
                        id: 7, resource: WatchedPart.resource(100), completeLength: 100, device: status.device,
                        inode: status.inode, bootID: subject.disk.bootID, sources: ["http://a/", "*http://b/"],
                        digests: [digest], label: label, pieces: pieces, selection: selection))
            #expect(subject.part.header == (try subject.manifest()?.header))
        }
    }

    @Test("Begun anew, a part keeps nothing of what it was: the old manifest goes before the old bytes")
    func beginsAnew() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<50)
            _ = try await subject.part.checkpoint(isPause: false)
            try subject.part.reject()
            subject.part.distrust()
            subject.disk.fail("sync " + WatchedPart.partName, .other)
            #expect(await condition { try await subject.part.checkpoint(isPause: false) } == .other)
            subject.disk.fail("sync " + WatchedPart.partName, nil)
            try subject.put("SEGDLMAN", at: subject.paths.manifestDraft)
            _ = subject.disk.take()

            try await subject.part.begin(
                WatchedPart.resource(60), id: 8, sources: [], digests: [], allocates: true)
            #expect(
                subject.disk.take() == [
                    "remove " + WatchedPart.manifestName, "remove " + WatchedPart.draftName,
                    "truncate to 0 " + WatchedPart.partName, "allocate 60 " + WatchedPart.partName,
                ])
            #expect(subject.disk.openNames == [WatchedPart.partName])
            #expect(subject.part.claimedLength == 0)
            try subject.fill(0..<20)
            #expect(try await subject.part.checkpoint(isPause: true) == 20)
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<20)] && manifest.pending.isEmpty)
            #expect(!manifest.isRejected && manifest.pausedModified != nil)
        }
    }

    @Test("A file that stands where the manifest is drafted and is none stays, and the download fails")
    func foreignDraft() async throws {
        try await WatchedPart.run { subject in
            try subject.put("my own notes", at: subject.paths.manifestDraft)
            #expect(await condition { try await subject.begin(100) } == .exists)
            #expect(try subject.contents(of: subject.paths.manifestDraft) == Array("my own notes".utf8))
        }
    }

    // MARK: Continuing

    /// A part with `0..<50` durable and `50..<80` pending, as the next run finds it.
    private func withFoundPart(
        _ body: (WatchedPart, PartialFile) async throws -> Void
    ) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<50)
            _ = try await subject.part.checkpoint(isPause: false)
            try subject.fill(50..<80)
            subject.part.close()
            #expect(subject.disk.openNames.isEmpty)
            let found = try #require(try subject.survey(.fail).part)
            defer { found.close() }
            _ = subject.disk.take()
            try await body(subject, found)
        }
    }

    @Test("What was not durable is written again, synced and only then recorded as durable")
    func adopts() async throws {
        try await self.withFoundPart { subject, part in
            let before = try subject.contents(of: subject.paths.part)
            try await part.adopt(
                id: 9, resource: WatchedPart.resource(100, tag: "\"b\""), limit: nil, sources: ["http://new/"],
                digests: [])
            #expect(
                subject.disk.take() == [
                    "write " + WatchedPart.partName, "sync " + WatchedPart.partName,
                    "create privately " + WatchedPart.draftName, "write " + WatchedPart.draftName,
                    "sync all of " + WatchedPart.draftName,
                    "rename over " + WatchedPart.draftName + " to " + WatchedPart.manifestName, "sync names",
                ])
            #expect(try subject.contents(of: subject.paths.part) == before)
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<50), WatchedPart.claim(50..<80)])
            #expect(manifest.pending.isEmpty && !manifest.isOverstated)
            let status = try part.file.status()
            #expect(
                manifest.header
                    == Manifest.Header(
                        id: 9, resource: WatchedPart.resource(100, tag: "\"b\""), completeLength: 100,
                        device: status.device, inode: status.inode, bootID: subject.disk.bootID,
                        sources: ["http://new/"], digests: []))
        }
    }

    @Test(
        "A part that is resumed as it was recorded keeps its resource and sources, and gets the digests that are given now"
    )
    func adoptsRecord() async throws {
        try await self.withFoundPart { subject, part in
            try await part.adopt(
                id: 9, resource: WatchedPart.resource(100, tag: "\"b\""), limit: nil, sources: ["http://new/"],
                digests: ["crc32=00000000"], keepsRecord: true)
            let header = try #require(try subject.manifest()?.header)
            #expect(header.resource == WatchedPart.resource(100))
            #expect(
                header.sources == ["http://host/file.bin"] && header.digests == ["crc32=00000000"] && header.id == 9)
        }
    }

    @Test("Claims that reach behind the limit are not adopted")
    func adoptsUpToLimit() async throws {
        for (limit, ranges) in [(50, [0..<50]), (79, [0..<50]), (80, [0..<50, 50..<80])] as [(Int64, [Range<Int64>])] {
            try await self.withFoundPart { subject, part in
                try await part.adopt(
                    id: 9, resource: WatchedPart.resource(100), limit: limit, sources: [], digests: [])
                #expect(try subject.manifest()?.durable.map(\.range) == ranges)
                #expect(part.settledClaims.map(\.range) == ranges.merged())
            }
        }
    }

    @Test("Without syncs an adopted part has as many durable claims as before", arguments: [SyncPolicy.end, .none])
    func adoptsUnsynced(policy: SyncPolicy) async throws {
        try await self.withFoundPart { subject, part in
            part.keep(policy)
            try await part.adopt(id: 9, resource: WatchedPart.resource(100), limit: nil, sources: [], digests: [])
            #expect(!subject.disk.take().contains("sync " + WatchedPart.partName))
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<50)])
            #expect(manifest.pending == [WatchedPart.claim(50..<80)])
        }
    }

    @Test("If what is adopted cannot be synced, only what was durable before is recorded")
    func adoptsNothingMore() async throws {
        try await self.withFoundPart { subject, part in
            subject.disk.fail("sync " + WatchedPart.partName, .other)
            #expect(
                await condition {
                    try await part.adopt(
                        id: 9, resource: WatchedPart.resource(100), limit: nil, sources: [], digests: [])
                } == .other)
            let manifest = try #require(try subject.manifest())
            #expect(manifest.header.id == 9)
            #expect(manifest.durable == [WatchedPart.claim(0..<50)] && manifest.pending.isEmpty)
        }
    }

    @Test("A part of another length is brought to that of its file")
    func adoptsLength() async throws {
        try await self.withFoundPart { subject, part in
            try part.file.truncate(to: 120)
            _ = subject.disk.take()
            try await part.adopt(id: 9, resource: WatchedPart.resource(100), limit: nil, sources: [], digests: [])
            #expect(subject.disk.take().first == "truncate to 100 " + WatchedPart.partName)
            #expect(try part.file.status().length == 100)
        }
    }

    @Test("A part is created, locked and protected; one that exists or is locked is another process's")
    func created() async throws {
        try await withTemporaryDirectory { directory in
            let paths = DestinationPaths(directory: directory, name: "file.bin")
            for (lock, code, isUnlocked) in [
                (nil, nil, false), (.unsupported, nil, true), (.busy, .exists, false),
            ] as [(StorageLock?, DownloadError.Code?, Bool)] {
                let disk = WatchedStorage()
                if let lock { disk.setLock(lock) }
                disk.before("lock file.bin.segdl-part") {
                    try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: paths.part)
                }
                var wasNoted = false
                let found = await failureCode {
                    let part = try PartialFile.create(paths, in: disk) { wasNoted = true }
                    #expect(part.claimedLength == 0 && part.header.id == 0 && part.paths == paths)
                    #expect(try part.file.status().ownership.permissions & Ownership.foreignWrite == 0)
                    part.close()
                }
                #expect(found == code && wasNoted == isUnlocked)
                let again = await failureCode { try PartialFile.create(paths, in: disk) {} }
                #expect(again == .exists)
                try disk.remove(paths.part)
            }
        }
    }
}
