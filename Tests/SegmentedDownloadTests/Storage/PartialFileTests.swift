import Foundation
import SegmentedDownloadCore
import Synchronization
import Testing

@testable import SegmentedDownload

/// What the manifest says of a part at every moment, and in which order that comes to the disk.
@Suite("A part file while it is fetched")
struct PartialFileTests {
    // MARK: Checkpoints

    @Test("The first checkpoint syncs the data, then drafts the manifest, syncs it and puts it in place")
    func firstCheckpoint() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10, 20..<40)
            _ = subject.disk.take()
            #expect(try await subject.part.checkpoint(isPause: false) == 30)
            #expect(
                subject.disk.take() == [
                    "sync " + WatchedPart.partName, "create privately " + WatchedPart.draftName,
                    "write " + WatchedPart.draftName, "sync all of " + WatchedPart.draftName,
                    "rename over " + WatchedPart.draftName + " to " + WatchedPart.manifestName, "sync names",
                    "write " + WatchedPart.draftName, "sync " + WatchedPart.draftName,
                ])
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<10), WatchedPart.claim(20..<40)])
            #expect(manifest.pending.isEmpty && manifest.pausedModified == nil && !manifest.isOverstated)
        }
    }

    @Test("A later checkpoint appends a record, and claims made since are pending")
    func laterCheckpoint() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10)
            _ = try await subject.part.checkpoint(isPause: false)
            try subject.fill(10..<20)
            #expect(try subject.manifest()?.pending == [WatchedPart.claim(10..<20)])
            _ = subject.disk.take()
            #expect(try await subject.part.checkpoint(isPause: false) == 20)
            #expect(
                subject.disk.take() == [
                    "sync " + WatchedPart.partName, "write " + WatchedPart.draftName, "sync " + WatchedPart.draftName,
                ])
            try subject.fill(20..<30)
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<10), WatchedPart.claim(10..<20)])
            #expect(manifest.pending == [WatchedPart.claim(20..<30)])
        }
    }

    @Test("Each policy syncs when it says, and calls no more durable than it has synced")
    func policies() async throws {
        for (policy, isPause, isSynced, namesAreSyncedAgain) in [
            (.checkpoint, false, true, false), (.checkpoint, true, true, false), (.end, false, false, false),
            (.end, true, true, true), (.none, false, false, false), (.none, true, false, false),
        ] as [(SyncPolicy, Bool, Bool, Bool)] {
            try await WatchedPart.run { subject in
                subject.part.keep(policy)
                try await subject.begin(9 << 20)
                try subject.fill(0..<10)
                #expect(try subject.manifest()?.pending == [WatchedPart.claim(0..<10)])
                _ = subject.disk.take()
                #expect(try await subject.part.checkpoint(isPause: isPause) == (isSynced ? 10 : 0))
                let write = "write " + WatchedPart.draftName
                let syncs = ["sync " + WatchedPart.partName, write, "sync " + WatchedPart.draftName]
                #expect(
                    subject.disk.take() == (isSynced ? syncs : [write]) + (namesAreSyncedAgain ? ["sync names"] : []))
                let manifest = try #require(try subject.manifest())
                #expect(manifest.durable.count == (isSynced ? 1 : 0))
                #expect(manifest.pending.count == (isSynced ? 0 : 1))
                #expect((manifest.pausedModified != nil) == isPause)
            }
        }
    }

    @Test("A pause records when the part was last changed, unless others were seen to change it")
    func pause() async throws {
        for isDistrusted in [false, true] {
            try await WatchedPart.run { subject in
                try await subject.begin(100)
                try subject.fill(0..<10)
                if isDistrusted { subject.part.distrust() }
                #expect(try await subject.part.checkpoint(isPause: true) == 10)
                let modified = try subject.part.file.status().modified
                let manifest = try #require(try subject.manifest())
                #expect(manifest.pausedModified == (isDistrusted ? nil : modified))
                #expect(manifest.durable == [WatchedPart.claim(0..<10)])
            }
        }
    }

    @Test("A claim made while the data is synced is not called durable", arguments: [false, true])
    func claimDuringSync(hasManifest: Bool) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(hasManifest ? 9 << 20 : 100)
            try subject.fill(0..<10)
            subject.disk.before("sync " + WatchedPart.partName) { try subject.fill(10..<20) }
            #expect(try await subject.part.checkpoint(isPause: false) == 10)
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<10)])
            #expect(manifest.pending == [WatchedPart.claim(10..<20)])
        }
    }

    @Test(
        "After claims were withdrawn while the data was synced, nothing new is called durable",
        arguments: [false, true])
    func withdrawalDuringSync(hasManifest: Bool) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(hasManifest ? 9 << 20 : 100)
            try subject.fill(0..<10, 10..<20)
            subject.disk.before("sync " + WatchedPart.partName) {
                try subject.part.forget(from: 10)
                try subject.fill(30..<40)
            }
            #expect(try await subject.part.checkpoint(isPause: false) == 0)
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable.isEmpty)
            #expect(manifest.pending == [WatchedPart.claim(0..<10), WatchedPart.claim(30..<40)])
            #expect(try await subject.part.checkpoint(isPause: false) == 20)
        }
    }

    // MARK: Failures

    @Test("A failed sync withdraws what was not durable, for good")
    func failedSync() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10)
            _ = try await subject.part.checkpoint(isPause: false)
            try subject.fill(10..<20)
            subject.disk.fail("sync " + WatchedPart.partName, .other)
            #expect(await condition { try await subject.part.checkpoint(isPause: false) } == .other)
            subject.disk.fail("sync " + WatchedPart.partName, nil)
            #expect(subject.part.claimedLength == 10)
            let writes = subject.disk.take().count { $0 == "write " + WatchedPart.draftName }
            try subject.fill(20..<30)
            #expect(subject.part.claimedLength == 10 && writes > 0)
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<10)] && manifest.pending.isEmpty)
        }
    }

    @Test("A failed sync before the first manifest leaves no claim and no manifest")
    func failedFirstSync() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10)
            subject.disk.fail("sync " + WatchedPart.partName, .other)
            #expect(await condition { try await subject.part.checkpoint(isPause: false) } == .other)
            #expect(try subject.manifest() == nil && subject.part.claimedLength == 0)
        }
    }

    @Test("While a record is being written, the part answers what the engine asks, as of the record before")
    func asksWhileWriting() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(9 << 20)
            try subject.fill(0..<10)
            let part = subject.part
            let seen = Mutex<[Int64]>([])
            for step in [
                { try subject.fill(10..<20) }, { _ = try await part.checkpoint(isPause: false) },
                { try part.forget(from: 10) }, { try part.reject() },
            ] as [() async throws -> Void] {
                subject.disk.before("write " + WatchedPart.draftName) {
                    let lengths = [part.claimedLength, part.durableLength, part.header.completeLength]
                    seen.withLock { $0 += part.reader == nil && !part.isPlaced ? lengths : [] }
                }
                try await step()
            }
            let length: Int64 = 9 << 20
            let found = seen.withLock { $0 }
            #expect(found == [10, 0, length, 20, 0, length, 20, 20, length, 10, 10, length])
            #expect(part.claimedLength == 10 && part.durableLength == 10)
        }
    }

    @Test("A claim that cannot be recorded is not counted")
    func unrecordedClaim() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(9 << 20)
            try subject.fill(0..<10)
            subject.disk.fail("write " + WatchedPart.draftName, .noSpace)
            #expect(await condition { try subject.fill(10..<20) } == .noSpace)
            #expect(subject.part.claimedLength == 10)
        }
    }

    // MARK: Withdrawals

    @Test("Forgotten claims are gone from the manifest, durable or not")
    func forget() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10, 10..<20)
            _ = try await subject.part.checkpoint(isPause: false)
            try subject.fill(20..<30)
            // One byte of it is enough for a claim to go.
            try subject.part.forget(from: 19)
            #expect(subject.part.settledClaims.map(\.range) == [0..<10])
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<10)] && manifest.pending.isEmpty)
            try subject.fill(10..<40)
            #expect(try subject.manifest()?.pending == [WatchedPart.claim(10..<40)])
            #expect(try await subject.part.checkpoint(isPause: false) == 40)
        }
    }

    @Test("A revision withdraws ranges and records who defines the resource now")
    func revision() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10, 10..<20)
            _ = try await subject.part.checkpoint(isPause: false)
            try subject.fill(20..<30)
            let digest = "md5=d41d8cd98f00b204e9800998ecf8427e"
            try await subject.part.revise(
                withdrawing: [12..<14],
                record: (WatchedPart.resource(100, tag: "\"b\""), ["http://other/"], [digest]), remarks: true)
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<10, mark: 201)])
            #expect(manifest.pending == [WatchedPart.claim(20..<30, mark: 201)])
            #expect(manifest.header.resource == WatchedPart.resource(100, tag: "\"b\""))
            #expect(manifest.header.sources == ["http://other/"] && manifest.header.digests == [digest])
        }
    }

    @Test("A revision before the first manifest writes none, and keeps marks and record where it says so")
    func revisionWithoutManifest() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10, 10..<20)
            try await subject.part.revise(withdrawing: [0..<1], record: nil, remarks: false)
            #expect(try subject.manifest() == nil)
            #expect(subject.part.settledClaims == [WatchedPart.claim(10..<20)])
            #expect(subject.part.header.sources == ["http://host/file.bin"])
        }
    }

    @Test("How far digests had come is withdrawn with the bytes before that, and with no others")
    func digestStates() async throws {
        let states = [128, 256].map { DigestState(algorithm: 1, offset: $0, bytes: [1, 2, 3, 4]) }
        for (withdrawn, kept) in [
            (128..<129, [128]), (127..<128, []), (256..<300, [128, 256]), (255..<256, [128]),
        ] as [(Range<Int64>, [Int64])] {
            try await WatchedPart.run { subject in
                let part = PartialFile(
                    paths: subject.paths, file: subject.part.file, storage: subject.disk, header: subject.part.header,
                    claims: [], digestStates: states)
                try await part.revise(withdrawing: [withdrawn], record: nil, remarks: false)
                #expect(part.digestStates.map(\.offset) == kept)
                try part.forget(from: 200)
                #expect(part.digestStates.map(\.offset) == kept.filter { $0 <= 200 })
            }
        }
    }

    @Test("A rejected file is recorded as one, by a record or with the next manifest", arguments: [false, true])
    func rejection(hasManifest: Bool) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(hasManifest ? 9 << 20 : 100)
            try subject.fill(0..<10)
            try subject.part.reject()
            if !hasManifest { _ = try await subject.part.checkpoint(isPause: false) }
            #expect(try subject.manifest()?.isRejected == true)
        }
    }

    // MARK: At the end

    @Test(
        "Once the file is in place no manifest is begun beside it, but one that exists is kept up",
        arguments: [false, true])
    func placed(hasManifest: Bool) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(hasManifest ? 9 << 20 : 100)
            try subject.fill(0..<10)
            subject.part.markPlaced()
            #expect(try await subject.part.checkpoint(isPause: false) == (hasManifest ? 10 : 0))
            #expect((try subject.manifest() != nil) == hasManifest)
        }
    }

    @Test("Claims are settled in order, with neighbours joined")
    func settled() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(30..<40, 10..<20, 0..<10)
            #expect(subject.part.settledClaims == [WatchedPart.claim(0..<20), WatchedPart.claim(30..<40)])
            #expect(subject.part.claimedLength == 30)
        }
    }

    @Test("A part that is given up goes after its manifest, and is closed")
    func discarded() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(9 << 20)
            try subject.put("SEGDLMAN", at: subject.paths.manifestDraft)
            try subject.part.discard()
            #expect(
                subject.disk.take()
                    == [WatchedPart.draftName, WatchedPart.manifestName, WatchedPart.partName].map {
                        "remove " + $0
                    })
            #expect(subject.disk.openNames.isEmpty)
        }
    }
}
