import Foundation
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// What a log has in memory and in its manifest after each change.
@Suite("The log of a manifest")
struct ManifestLogTests {
    private static let name = "file.bin.segdl"
    private static let states = [128, 256].map { DigestState(algorithm: 1, offset: $0, bytes: [1, 2, 3, 4]) }

    /// A log, and where its manifest is.
    private struct Subject {
        let disk = WatchedStorage()
        let path: String
        var log: ManifestLog

        /// Writes a manifest and has the log continue in it.
        ///
        /// - Returns: Whether the log took it.
        mutating func open(_ draft: ManifestDraft) throws -> Bool {
            try self.disk.remove(self.path)
            let file = try self.disk.open(self.path, .create)
            try file.writeFully(draft.bytes, at: 0)
            _ = self.disk.take()
            return try self.log.move(to: file, from: draft)
        }

        func manifest() throws -> Manifest {
            try ManifestCodec.decode(Array(Data(contentsOf: URL(fileURLWithPath: self.path))))
        }
    }

    private static func header() -> Manifest.Header {
        Manifest.Header(
            id: 7, resource: WatchedPart.resource(1000), completeLength: 1000, device: 1, inode: 2, bootID: "boot",
            sources: ["http://host/file.bin"], digests: [])
    }

    /// Runs `body` with a log of these claims, which has a manifest.
    private static func run(
        _ claims: Range<Int64>..., durableCount: Int = 0, states: [DigestState] = [],
        _ body: (inout Subject) throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            var subject = Subject(
                path: directory + "/" + Self.name,
                log: ManifestLog(
                    header: Self.header(), claims: claims.map { WatchedPart.claim($0) }, durableCount: durableCount,
                    digestStates: states))
            let isOpen = try subject.open(ManifestDraft(of: subject.log, durableCount: durableCount))
            #expect(isOpen)
            try body(&subject)
            subject.log.file?.close()
        }
    }

    /// The condition of the storage error that something throws.
    private static func condition(_ body: () throws -> Void) -> StorageError.Condition? {
        do {
            try body()
            return nil
        } catch {
            return (error as? StorageError)?.condition
        }
    }

    // MARK: Claims

    @Test("A claim is in the manifest and counts, unless the manifest cannot be written")
    func claims() async throws {
        try await Self.run { subject in
            let counts = try subject.log.claim(WatchedPart.claim(0..<10))
            #expect(counts && subject.log.claimedLength == 10 && subject.log.durableLength == 0)
            subject.disk.fail("write " + Self.name, .noSpace)
            let failure = Self.condition { _ = try subject.log.claim(WatchedPart.claim(10..<20)) }
            #expect(failure == .noSpace)
            #expect(subject.log.claims == [WatchedPart.claim(0..<10)])
            subject.disk.fail("write " + Self.name, nil)
            _ = try subject.log.claim(WatchedPart.claim(20..<30))
            #expect(try subject.manifest().pending == [WatchedPart.claim(0..<10), WatchedPart.claim(20..<30)])
        }
    }

    @Test("Without a manifest claims count, and nothing is written")
    func withoutManifest() throws {
        var log = ManifestLog(header: Self.header(), claims: [])
        let counts = try log.claim(WatchedPart.claim(0..<10))
        try log.checkpoint(1, states: nil, pausing: nil)
        #expect(counts && log.durableLength == 10 && log.file == nil)
    }

    @Test("A failed sync withdraws what is not durable, and nothing counts after it until the part is begun anew")
    func failedSync() async throws {
        try await Self.run(0..<10, 10..<20, durableCount: 1, states: Self.states) { subject in
            let generation = subject.log.generation
            subject.log.failSync()
            #expect(subject.log.claims == [WatchedPart.claim(0..<10)] && subject.log.digestStates.isEmpty)
            #expect(subject.log.generation > generation)
            let countsAfter = try subject.log.claim(WatchedPart.claim(20..<30))
            #expect(!countsAfter && subject.log.claimedLength == 10)
            let manifest = try subject.manifest()
            #expect(manifest.durable == [WatchedPart.claim(0..<10)] && manifest.pending.isEmpty)
            subject.log.clear(isRecorded: true)
            let countsAnew = try subject.log.claim(WatchedPart.claim(20..<30))
            #expect(countsAnew)
        }
    }

    @Test("A failed sync is survived without a manifest, and with one that cannot be written")
    func failedSyncUnrecorded() async throws {
        try await Self.run(0..<10) { subject in
            subject.disk.fail("write " + Self.name, .noSpace)
            subject.log.failSync()
            #expect(subject.log.claims.isEmpty)
        }
        var log = ManifestLog(header: Self.header(), claims: [WatchedPart.claim(0..<10)])
        log.failSync()
        #expect(log.claims.isEmpty)
    }

    // MARK: Checkpoints

    @Test("A checkpoint makes claims durable and never fewer than before")
    func checkpoints() async throws {
        try await Self.run(0..<10, 10..<20, 20..<30) { subject in
            try subject.log.checkpoint(2, states: nil, pausing: nil)
            #expect(subject.log.durableLength == 20)
            let manifest = try subject.manifest()
            #expect(manifest.durable.count == 2 && manifest.pending.count == 1)
            #expect(manifest.pausedModified == nil && !manifest.isOverstated)
            try subject.log.checkpoint(1, states: nil, pausing: nil)
            #expect(subject.log.durableCount == 2)
        }
    }

    @Test("Digest states are recorded when they have changed, and only then")
    func states() async throws {
        try await Self.run { subject in
            let pieces = Self.states.flatMap(\.pieces).count
            for (states, writes) in [(nil, 1), (Self.states, pieces + 1), (Self.states, 1), ([], 1)]
                as [([DigestState]?, Int)]
            {
                _ = subject.disk.take()
                try subject.log.checkpoint(0, states: states, pausing: nil)
                #expect(subject.disk.take() == Array(repeating: "write " + Self.name, count: writes))
                #expect(subject.log.digestStates == states ?? [])
            }
            // Both have the same algorithm: the later one is the one that is read.
            #expect(try subject.manifest().digestStates == [Self.states[1]])
        }
    }

    @Test("A pause records when the part was changed last, unless others were seen to change it")
    func pause() async throws {
        for isDistrusted in [false, true] {
            try await Self.run(0..<10) { subject in
                let part = try subject.disk.open(subject.path + "-part", .create)
                defer { part.close() }
                if isDistrusted { subject.log.distrust() }
                try subject.log.checkpoint(1, states: nil, pausing: part)
                let modified = try part.status().modified
                let manifest = try subject.manifest()
                #expect(manifest.pausedModified == (isDistrusted ? nil : modified))
                #expect(manifest.durable == [WatchedPart.claim(0..<10)])
            }
        }
    }

    // MARK: Withdrawals

    @Test("Forgetting withdraws claims and states beyond an offset, here and in the manifest, and ends a generation")
    func forget() async throws {
        try await Self.run(0..<100, 100..<200, 200..<300, durableCount: 3, states: Self.states) { subject in
            let generation = subject.log.generation
            try subject.log.forget(from: 200)
            #expect(subject.log.claims.map(\.range) == [0..<100, 100..<200] && subject.log.durableCount == 2)
            #expect(subject.log.digestStates.map(\.offset) == [128] && subject.log.generation == generation + 1)
            #expect(try subject.manifest().durable.map(\.range) == [0..<100, 100..<200])
        }
    }

    @Test("Before the manifest is written, claims are withdrawn in memory only")
    func keep() async throws {
        try await Self.run(0..<100, 100..<200, 200..<300, durableCount: 2, states: Self.states) { subject in
            let generation = subject.log.generation
            _ = subject.disk.take()
            subject.log.keep(upTo: 150)
            #expect(subject.log.claims.map(\.range) == [0..<100] && subject.log.durableCount == 1)
            #expect(subject.log.digestStates.map(\.offset) == [128] && subject.log.generation == generation)
            #expect(subject.disk.take().isEmpty)
        }
    }

    @Test("Withdrawing ranges leaves the claims beside them, marked if that is wanted")
    func withdraw() async throws {
        for marksRest in [false, true] {
            try await Self.run(0..<100, 100..<200, 200..<300, durableCount: 2, states: Self.states) { subject in
                let generation = subject.log.generation
                subject.log.withdraw([150..<160], marksRest: marksRest)
                let mark: UInt8 = marksRest ? 201 : 0
                #expect(
                    subject.log.claims == [
                        WatchedPart.claim(0..<100, mark: mark), WatchedPart.claim(200..<300, mark: mark),
                    ])
                #expect(subject.log.durableCount == 1 && subject.log.generation == generation + 1)
                #expect(subject.log.digestStates.map(\.offset) == [128])
            }
        }
    }

    // MARK: The manifest's file

    @Test("A manifest takes the claims that were made while it was written")
    func lateClaims() async throws {
        try await Self.run(0..<10) { subject in
            let draft = ManifestDraft(of: subject.log, durableCount: 1)
            _ = try subject.log.claim(WatchedPart.claim(10..<20))
            let before = subject.log.file
            let isOpen = try subject.open(draft)
            #expect(isOpen && before != nil && subject.disk.openNames == [Self.name])
            let manifest = try subject.manifest()
            #expect(manifest.durable == [WatchedPart.claim(0..<10)] && subject.log.durableCount == 1)
            #expect(manifest.pending == [WatchedPart.claim(10..<20)])
        }
    }

    @Test("A manifest from before claims were withdrawn is not used")
    func obsoleteDraft() async throws {
        try await Self.run(0..<10, 10..<20) { subject in
            let draft = ManifestDraft(of: subject.log, durableCount: 2)
            try subject.log.forget(from: 10)
            let isOpen = try subject.open(draft)
            #expect(!isOpen && subject.log.durableCount == 0)
            #expect(subject.disk.openNames == [Self.name, Self.name])
        }
    }

    @Test("If a late claim cannot be appended there is no manifest, and it is closed")
    func lateClaimFails() async throws {
        try await Self.run { subject in
            let draft = ManifestDraft(of: subject.log, durableCount: 0)
            _ = try subject.log.claim(WatchedPart.claim(0..<10))
            let file = try subject.disk.open(subject.path + "-new", .create)
            try file.writeFully(draft.bytes, at: 0)
            subject.disk.fail("write " + Self.name + "-new", .noSpace)
            let failure = Self.condition { _ = try subject.log.move(to: file, from: draft) }
            #expect(failure == .noSpace && subject.log.file == nil && subject.disk.openNames.isEmpty)
            #expect(subject.log.claims == [WatchedPart.claim(0..<10)])
        }
    }

    @Test("A log that is cleared knows nothing but its header, and has no manifest")
    func clear() async throws {
        try await Self.run(0..<10, durableCount: 1, states: Self.states) { subject in
            try subject.log.reject()
            #expect(try subject.manifest().isRejected && subject.log.isRejected)
            subject.log.clear(isRecorded: false)
            #expect(subject.log.claims.isEmpty && subject.log.durableCount == 0 && subject.log.digestStates.isEmpty)
            #expect(!subject.log.isRejected && !subject.log.isRecorded && subject.log.header == Self.header())
            #expect(subject.log.file == nil && subject.disk.openNames.isEmpty)
        }
    }

    @Test("At the end a manifest that exists is continued, and no other begun")
    func endRecording() async throws {
        try await Self.run { subject in
            subject.log.endRecording()
            #expect(subject.log.isRecorded)
        }
        var log = ManifestLog(header: Self.header(), claims: [])
        log.endRecording()
        #expect(!log.isRecorded)
    }
}
