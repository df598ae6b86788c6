import SegmentedDownloadCore
import Testing

/// What a download does about a finished file at its destination.
@Suite("An existing file at the destination")
struct ExistingFileTests {
    private static let length: Int64 = 10 << 20
    private static let strong = RemoteResource.tagged("\"a\"", length: length)
    private static let unproven = RemoteResource(completeLength: length)

    private static func comparing(_ record: RemoteResource = strong) -> Script {
        var script = Script()
        script.tell(
            .surveyed(.existing(ExistingFile(length: Self.length, record: record, agreesWithDigests: nil))))
        return script
    }

    @Test("A finished file is revalidated with If-None-Match, and a 304 or an equal tag confirms it")
    func compares() {
        for response in [RangeResponse.notModified, .partial(ByteRange(0..<1), Self.strong), .whole(Self.strong)] {
            var script = Self.comparing()
            #expect(script.order(0)?.request.ifNoneMatchFieldValue == "\"a\"")
            script.respond(0, response)
            #expect(script.conclusion == .alreadyComplete)
        }
    }

    @Test("A finished file without a validator is not reported as current")
    func comparesNothing() {
        for response in [RangeResponse.partial(ByteRange(0..<1), Self.unproven), .whole(Self.unproven)] {
            var script = Self.comparing(Self.unproven)
            script.respond(0, response)
            #expect(script.failure?.code == .exists)
        }
    }

    @Test("The policy and the digests decide what happens to an existing file")
    func existing() {
        func conclusion(_ policy: DownloadOptions.ExistingFilePolicy, _ agrees: Bool?) -> DownloadConclusion? {
            var script = Script { $0.ifExists = policy }
            script.tell(.surveyed(.existing(ExistingFile(length: 5, record: nil, agreesWithDigests: agrees))))
            return script.conclusion
        }
        #expect(conclusion(.skip, nil) == .alreadyComplete)
        #expect(conclusion(.verify, true) == .alreadyComplete)
        #expect(conclusion(.overwrite, nil) == nil)
        #expect(conclusion(.update, true) == .alreadyComplete)
        #expect(conclusion(.update, false) == nil && conclusion(.update, nil) == nil)
        for (policy, agrees) in [(.fail, nil), (.verify, false), (.verify, nil)]
            as [(DownloadOptions.ExistingFilePolicy, Bool?)]
        {
            guard case .failed(let failure) = conclusion(policy, agrees) else {
                Issue.record("\(policy) \(String(describing: agrees))")
                continue
            }
            #expect(failure.code == .exists)
        }
    }
}
