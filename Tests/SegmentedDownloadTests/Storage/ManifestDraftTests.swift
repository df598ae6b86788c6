import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// What a manifest that is written anew has of a log.
@Suite("The draft of a manifest")
struct ManifestDraftTests {
    private static let claims = [WatchedPart.claim(0..<10), WatchedPart.claim(20..<40, mark: 3)]

    private static func log(states: [DigestState] = [], isRejected: Bool = false) -> ManifestLog {
        ManifestLog(
            header: Manifest.Header(
                id: 7, resource: WatchedPart.resource(100), completeLength: 100, device: 1, inode: 2, bootID: "boot",
                sources: ["http://host/file.bin"], digests: []),
            claims: Self.claims, digestStates: states, isRejected: isRejected)
    }

    @Test("It has header, claims, digest states and rejection of the log", arguments: [false, true])
    func content(isRejected: Bool) throws {
        let states = [DigestState(algorithm: 1, offset: 64, bytes: [1, 2, 3, 4])]
        let log = Self.log(states: states, isRejected: isRejected)
        let draft = ManifestDraft(of: log, durableCount: 1)
        let manifest = try ManifestCodec.decode(draft.bytes)
        #expect(manifest.header == log.header && manifest.digestStates == states)
        #expect(manifest.durable == [Self.claims[0]] && manifest.pending == [Self.claims[1]])
        #expect(manifest.isRejected == isRejected && manifest.pausedModified == nil)
        #expect(draft.claimCount == 2 && draft.durableCount == 1 && draft.generation == log.generation)
        #expect(draft.recordCount == 2 + states[0].pieces.count + 1 + (isRejected ? 1 : 0))
    }

    @Test("No more claims are durable than there are", arguments: [(0, 0), (2, 2), (3, 2), (.max, 2)] as [(Int, Int)])
    func durable(count: Int, kept: Int) throws {
        let draft = ManifestDraft(of: Self.log(), durableCount: count)
        let manifest = try ManifestCodec.decode(draft.bytes)
        #expect(draft.durableCount == kept && manifest.durable.count == kept && !manifest.isOverstated)
    }
}
