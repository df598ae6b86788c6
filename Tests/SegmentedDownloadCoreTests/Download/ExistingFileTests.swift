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
        for response in [RangeResponse.notModified(), .partial(ByteRange(0..<1), Self.strong), .whole(Self.strong)] {
            var script = Self.comparing()
            #expect(script.order(0)?.request.ifNoneMatchFieldValue == "\"a\"")
            script.respond(0, response)
            #expect(script.isAlreadyComplete)
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

    private static let modified = HTTPDate(secondsSinceEpoch: 1_700_000_000)

    /// A download of a file of which nothing is recorded, with a modification time.
    private static func dated(
        _ policy: DownloadOptions.ExistingFilePolicy, length: Int64 = length, modified: HTTPDate? = modified
    ) -> Script {
        var script = Script { $0.ifExists = policy }
        script.tell(
            .surveyed(
                .existing(
                    ExistingFile(length: length, record: nil, agreesWithDigests: nil, modified: modified))))
        return script
    }

    private static func remote(seconds: Int64?) -> RemoteResource {
        RemoteResource(
            completeLength: Self.length,
            validator: Validator(
                entityTag: nil, lastModified: seconds.flatMap { HTTPDate(secondsSinceEpoch: $0) }))
    }

    @Test(
        "A file without a record stays unless the remote one is newer, or for update has another length",
        arguments: [DownloadOptions.ExistingFilePolicy.update, .newer])
    func dates(policy: DownloadOptions.ExistingFilePolicy) {
        for (seconds, length, stays) in [
            (1_699_999_999, Self.length, true), (1_700_000_000, Self.length, true),
            (1_700_000_001, Self.length, false), (1_700_000_001, 5, false),
            (1_600_000_000, 5, policy == .newer), (nil, Self.length, false),
        ] as [(Int64?, Int64, Bool)] {
            let resource = Self.remote(seconds: seconds)
            for response in [RangeResponse.partial(ByteRange(0..<1), resource), .whole(resource)] {
                var script = Self.dated(policy, length: length)
                // A 304 would not state the length.
                #expect(script.order(0)?.request.modifiedSince == (policy == .newer ? Self.modified : nil))
                #expect(script.order(0)?.request.ifNoneMatchFieldValue == nil)
                script.respond(0, response)
                #expect(script.isAlreadyComplete == stays, "\(seconds ?? -1), \(length) bytes")
                #expect(script.take().contains { $0 == .replaceExisting } == !stays)
            }
        }
    }

    @Test("For newer, a 304 to the local date means that the file stays, whatever its length")
    func notModified() {
        var script = Self.dated(.newer, length: 5)
        script.respond(0, .notModified())
        #expect(script.isAlreadyComplete)
    }

    @Test("For update one byte is asked for, and a file that was cut off is replaced though its date is later")
    func cutOff() {
        let later = HTTPDate(secondsSinceEpoch: 1_800_000_000)
        for length in [0, 5, Self.length - 1, Self.length, Self.length + 1] {
            var script = Self.dated(.update, length: length, modified: later)
            #expect(script.order(0)?.request.lowerBound == 0 && script.order(0)?.request.upperBound == 1)
            script.respond(0, .partial(ByteRange(0..<1), Self.remote(seconds: 1_600_000_000)))
            #expect(script.isAlreadyComplete == (length == Self.length), "\(length) bytes")
        }
    }

    @Test("For update, a server that does not support ranges is asked once, and its body is not fetched to compare")
    func cutOffWithoutRanges() {
        var script = Self.dated(.update)
        script.respond(0, .whole(Self.remote(seconds: 1_600_000_000)))
        #expect(script.isAlreadyComplete)
        #expect(script.order(1) == nil)
    }

    @Test("An empty remote file is asked for without a range, and its date decides too")
    func emptyRemote() {
        var script = Self.dated(.newer)
        script.respond(0, .unsatisfiable(completeLength: 0))
        script.end(0, .stopped)
        #expect(script.order(1)?.request.isRanged == false)
        var resource = Self.remote(seconds: 1_600_000_000)
        resource.completeLength = 0
        script.respond(1, .whole(resource))
        #expect(script.isAlreadyComplete)
    }

    @Test("The policy and the digests decide what happens to an existing file")
    func existing() {
        func conclusion(_ policy: DownloadOptions.ExistingFilePolicy, _ agrees: Bool?) -> DownloadConclusion? {
            var script = Script { $0.ifExists = policy }
            script.tell(.surveyed(.existing(ExistingFile(length: 5, record: nil, agreesWithDigests: agrees))))
            return script.conclusion
        }
        #expect(conclusion(.skip, nil)?.file?.wasThere == true)
        #expect(conclusion(.verify, true)?.file?.wasThere == true)
        #expect(conclusion(.overwrite, nil) == nil)
        #expect(conclusion(.update, true)?.file?.wasThere == true)
        #expect(conclusion(.update, false) == nil && conclusion(.update, nil) == nil)
        for (policy, agrees) in [(.fail, nil), (.verify, false), (.verify, nil), (.skip, false)]
            as [(DownloadOptions.ExistingFilePolicy, Bool?)]
        {
            guard case .failed(let failure) = conclusion(policy, agrees) else {
                Issue.record("\(policy) \(String(describing: agrees))")
                continue
            }
            #expect(failure.code == .exists)
        }
    }

    @Test("A digest that an answer states and the record lacks has the file compared with it before it counts")
    func statedDigest() throws {
        let digest = try #require(ExpectedDigest(.md5, hex: String(repeating: "1", count: 32)))
        var stating = Self.strong
        stating.state([digest])
        for response in [.notModified(stating: [digest]), .partial(ByteRange(0..<1), stating), .whole(stating)]
            as [RangeResponse]
        {
            for agrees in [true, false] {
                var script = Self.comparing()
                _ = script.take()
                script.respond(0, response)
                #expect(script.take().suffix(2) == [.require([digest]), .survey] && script.conclusion == nil)
                script.end(0, .stopped)
                script.tell(
                    .surveyed(
                        .existing(ExistingFile(length: Self.length, record: Self.strong, agreesWithDigests: agrees))))
                #expect(script.isAlreadyComplete == agrees && (script.failure?.code == .exists) != agrees)
            }
            var known = Self.comparing(stating)
            known.respond(0, response)
            #expect(known.isAlreadyComplete, "the record has it, or nothing was asked")
        }
    }
}
