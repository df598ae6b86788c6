import Foundation
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// How a manifest is written anew beside a part, and removed.
@Suite("The manifest beside a part file")
struct PartialFileManifestTests {
    @Test("A manifest without a durable claim is not synced where syncs wait for the end")
    func unsyncedManifest() async throws {
        for policy in [SyncPolicy.checkpoint, .end, .none] {
            try await WatchedPart.run { subject in
                subject.part.keep(policy)
                try await subject.part.begin(
                    WatchedPart.resource(9 << 20), id: 7, sources: [], digests: [], allocates: true)
                let calls = subject.disk.take()
                #expect(calls.contains("sync all of " + WatchedPart.draftName) == (policy == .checkpoint))
                #expect(calls.contains("sync names") == (policy == .checkpoint))
            }
        }
    }

    @Test("A claim made while the manifest is drafted is appended to it, in its place in the log")
    func claimDuringDraft() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10)
            subject.disk.before("sync names") { try subject.fill(10..<20, 20..<30) }
            #expect(try await subject.part.checkpoint(isPause: false) == 10)
            #expect(
                try subject.manifest()?.pending == [WatchedPart.claim(10..<20), WatchedPart.claim(20..<30)])
        }
    }

    @Test("A manifest is drafted again if claims were withdrawn while it was written")
    func withdrawalDuringDraft() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10, 10..<20)
            subject.disk.before("sync names") { try subject.part.forget(from: 10) }
            _ = try await subject.part.checkpoint(isPause: false)
            #expect(subject.disk.take().count { $0 == "create privately " + WatchedPart.draftName } == 2)
            let manifest = try #require(try subject.manifest())
            #expect((manifest.durable + manifest.pending).map(\.range) == [0..<10])
        }
    }

    @Test("If a late claim cannot be appended the checkpoint fails, and the next one writes the manifest again")
    func lateClaimFails() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10)
            subject.disk.before("sync names") {
                try subject.fill(10..<20)
                subject.disk.fail("write " + WatchedPart.draftName, .noSpace)
            }
            #expect(await condition { try await subject.part.checkpoint(isPause: false) } == .noSpace)
            #expect(subject.disk.openNames == [WatchedPart.partName])
            subject.disk.fail("write " + WatchedPart.draftName, nil)
            #expect(try await subject.part.checkpoint(isPause: false) == 20)
            #expect(try subject.manifest()?.durable.map(\.range) == [0..<10, 10..<20])
        }
    }

    @Test("A manifest that is written again replaces the one before, which is closed")
    func rewrites() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<10, 10..<20)
            _ = try await subject.part.checkpoint(isPause: false)
            try await subject.part.revise(withdrawing: [15..<16], record: nil, remarks: false)
            #expect(subject.disk.openNames == [WatchedPart.draftName, WatchedPart.partName])
            try subject.fill(30..<40)
            let manifest = try #require(try subject.manifest())
            #expect(manifest.durable == [WatchedPart.claim(0..<10)])
            #expect(manifest.pending == [WatchedPart.claim(30..<40)])
        }
    }

    @Test("The manifest of this run is removed, and its draft; one that another run put there stays")
    func removal() async throws {
        for isReplaced in [false, true] {
            try await WatchedPart.run { subject in
                try await subject.begin(9 << 20)
                try subject.put("SEGDLMAN", at: subject.paths.manifestDraft)
                if isReplaced {
                    try FileManager.default.removeItem(atPath: subject.paths.manifest)
                    try subject.put("SEGDLMAN", at: subject.paths.manifest)
                }
                _ = subject.disk.take()
                try subject.part.removeManifest()
                #expect(!subject.exists(subject.paths.manifestDraft))
                #expect(subject.exists(subject.paths.manifest) == isReplaced)
            }
        }
    }

    @Test("A draft that is no manifest stays where it is")
    func foreignDraft() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(9 << 20)
            try subject.put("my own notes", at: subject.paths.manifestDraft)
            try subject.part.removeManifest()
            #expect(subject.exists(subject.paths.manifestDraft) && !subject.exists(subject.paths.manifest))
        }
    }
}
