import SegmentedDownloadCore
import Testing

@Suite("The first request")
struct ProbingTests {
    private static let length: Int64 = 10 << 20
    private static let strong = RemoteResource.tagged("\"a\"", length: length)
    private static let unproven = RemoteResource(completeLength: length)

    private static func resuming(
        _ resource: RemoteResource = strong, missing: [Range<Int64>] = [3_000_000..<length],
        _ change: (inout DownloadSettings) -> Void = { _ in }
    ) -> Script {
        var script = Script(.exactly(4), change)
        script.tell(
            .surveyed(.partial(SavedPartial(resource: resource, completeLength: Self.length, missing: missing))))
        return script
    }

    private static func comparing(_ record: RemoteResource = strong) -> Script {
        var script = Script()
        script.tell(
            .surveyed(.existing(ExistingFile(length: Self.length, record: record, agreesWithDigests: nil))))
        return script
    }

    private static func preparation(_ script: inout Script) -> Preparation? {
        script.take().compactMap { if case .prepare(let preparation) = $0 { preparation } else { nil } }.first
    }

    // MARK: Fresh

    @Test("A fresh download requests everything from byte 0 as a range, without a condition")
    func freshRequest() {
        var script = Script()
        #expect(script.take() == [.survey])
        script.tell(.surveyed(.nothing))
        #expect(script.order(0)?.request.rangeFieldValue == "bytes=0-")
        #expect(script.order(0)?.request.ifRangeFieldValue == nil)
    }

    @Test("No byte is accepted before the part file is ready")
    func waitsForPart() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        _ = script.take()
        script.accept(0, Self.strong)
        #expect(script.take().count == 1)
        script.tell(.prepared())
        #expect(script.take() == [.answer(LeaseID(0), .proceed(limit: Self.length))])
    }

    @Test("A server without ranges serves one stream, which is used as it is")
    func singleStream() {
        var script = Script(.exactly(8))
        script.tell(.surveyed(.nothing))
        script.respond(0, .whole(Self.strong))
        script.tell(.prepared())
        #expect(script.leases == [0])
        script.progress(0, to: Self.length)
        script.end(0, .finished)
        #expect(script.take().last?.isPlace == true)
    }

    @Test("After an unusable answer to a range, one request without a range follows, whose result is final")
    func asksWithoutRange() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.respond(0, .ignoresRanges("no Content-Range"))
        // Only after the first connection has closed: an origin may count connections.
        #expect(script.order(1) == nil)
        script.end(0, .stopped)
        #expect(script.order(1)?.request.isRanged == false)
        script.respond(1, .ignoresRanges("no Content-Range"))
        #expect(script.failure?.code == .protocol)
    }

    @Test("An empty file is prepared and placed without another request")
    func empty() {
        for response in [RangeResponse.unsatisfiable(completeLength: 0), .whole(.tagged("\"a\"", length: 0))] {
            var script = Script()
            script.tell(.surveyed(.nothing))
            script.respond(0, response)
            script.end(0, .finished)
            script.tell(.prepared())
            #expect(script.leases.isEmpty)
            #expect(script.take().last?.isPlace == true)
        }
    }

    @Test("A 416 without a length leads to a request without a range")
    func unsatisfiableWithoutLength() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.respond(0, .unsatisfiable(completeLength: nil))
        script.end(0, .stopped)
        #expect(script.order(1)?.request.isRanged == false)
    }

    @Test("A file longer than allowed is refused before anything is prepared")
    func tooLong() {
        var script = Script { $0.lengthMaximum = 100 }
        script.tell(.surveyed(.nothing))
        _ = script.take()
        script.accept(0, Self.strong)
        #expect(script.failure?.code == .space)
        #expect(!script.take().contains { $0.isPrepare })
    }

    @Test(
        "A permanent error is final at once",
        arguments: [
            (RangeResponse.rejected(status: 404), Failure.Code.server), (.rejected(status: 403), .server),
            (.unauthorized(status: 401, challenge: nil), .auth), (.malformed("CL"), .protocol),
            (.redirected(status: 302, location: "/"), .server),
        ]
    )
    func finalAnswers(response: RangeResponse, code: Failure.Code) {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.respond(0, response)
        #expect(script.failure?.code == code)
        #expect(script.take().first { if case .answer = $0 { true } else { false } } == .answer(LeaseID(0), .stop))
    }

    @Test("A refusal delays the next request for as long as the origin asks")
    func refusal() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.respond(0, .refused(status: 503, retryAfter: RetryAfter(fieldValue: "20", date: nil, fallbackNow: nil)))
        script.end(0, .finished)
        script.wait(.milliseconds(19_900))
        #expect(script.leases.isEmpty)
        script.wait(.milliseconds(200))
        #expect(script.leases == [1])
    }

    @Test("A Retry-After longer than allowed is reported, and segdl does not wait")
    func refusalTooLong() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.respond(0, .refused(status: 429, retryAfter: RetryAfter(fieldValue: "601", date: nil, fallbackNow: nil)))
        #expect(script.failure?.retryAfter == .seconds(601))
    }

    @Test("A Retry-After that fails one download does not block others to the same host")
    func othersAreNotBlocked() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        let never = RetryAfter(fieldValue: "999999999999999999999", date: nil, fallbackNow: nil)
        script.respond(0, .refused(status: 429, retryAfter: never))
        script.end(0, .finished)
        #expect(script.conclusion != nil)
        script.tell(.resume)
        script.tell(.surveyed(.nothing))
        script.wait(.seconds(3600))
        #expect(script.leases == [1], "an hour later requests to the host are allowed")
    }

    @Test("A host that was never reached fails the download after the fourth attempt")
    func firstContact() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        for attempt in 0..<4 {
            #expect(script.leases == [attempt])
            script.end(attempt, .failed(Failure(.network, "no such host", isTransient: true)))
            script.wait(.seconds(60))
        }
        #expect(script.failure?.code == .network)
    }

    @Test("A request whose head is late is revoked and repeated")
    func lateHead() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.wait(.seconds(31))
        #expect(script.take().last == .revoke(LeaseID(0)))
        script.end(0, .revoked)
        script.wait(.seconds(1))
        #expect(script.leases == [1])
    }

    @Test("A head that arrives after the revocation is not used: its connection is being closed")
    func headAfterRevocation() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.wait(.seconds(31))
        _ = script.take()
        script.accept(0, Self.strong)
        script.end(0, .revoked)
        if Self.preparation(&script) != nil { script.tell(.prepared()) }
        script.wait(.seconds(1))
        #expect(script.leases == [1], "no lease fetches, and none ever will")
    }

    // MARK: Resuming

    @Test("A resumed download requests its first gap, on condition that the resource is the same")
    func resumeRequest() {
        let script = Self.resuming()
        let request = script.order(0)?.request
        #expect(request?.rangeFieldValue == "bytes=3000000-")
        #expect(request?.ifRangeFieldValue == "\"a\"")
        #expect(Self.resuming(missing: [5..<10, 20..<Self.length]).order(0)?.request.rangeFieldValue == "bytes=5-9")
    }

    @Test("Without a validator a resumed download compares 16 KiB before the gap")
    func resumeOverlaps() {
        let order = Self.resuming(Self.unproven).order(0)
        #expect(order?.request.lowerBound == 3_000_000 - Int64(16 << 10))
        #expect(order?.writesFrom == 3_000_000)
    }

    @Test("An overlap that would reach before the first byte begins with it")
    func resumeOverlapsAtStart() {
        let order = Self.resuming(Self.unproven, missing: [100..<Self.length]).order(0)
        #expect(order?.request.lowerBound == 0)
    }

    @Test("If only bytes can prove the resource, no source writes before a comparison succeeded")
    func nobodyWritesUnproven() {
        var script = Self.resuming(Self.unproven)
        script.accept(0, Self.unproven)
        script.tell(.prepared())
        script.wait(.seconds(1))
        #expect(script.leases.count > 1)
        #expect(script.orders.dropFirst().allSatisfy { $0.isSample })
        script.progress(0, to: 3_000_100)
        while let sample = script.orders.first(where: { $0.isSample }) {
            script.agree(sample.lease.rawValue, Self.unproven)
        }
        script.wait(.milliseconds(100))
        #expect(script.leases.count == 4)
        #expect(script.orders.allSatisfy { !$0.isSample })
    }

    @Test(
        "Without a validator and without byte 0, later bytes are compared before anything is written")
    func comparesBehindGap() {
        var script = Self.resuming(Self.unproven, missing: [0..<4_000_000])
        script.accept(0, Self.unproven)
        script.end(0, .stopped)
        #expect(Self.preparation(&script)?.mode == .adopted)
        script.tell(.prepared())
        #expect(!script.orders.isEmpty)
        while let sample = script.orders.first(where: { $0.isSample }) {
            #expect(script.orders.allSatisfy { $0.isSample })
            script.agree(sample.lease.rawValue, Self.unproven)
        }
        script.wait(.milliseconds(100))
        #expect(script.orders.first?.writesFrom == 0)
        #expect(Self.resuming(missing: [0..<4_000_000]).order(0)?.request.ifRangeFieldValue == "\"a\"")
    }

    @Test("A 206 continues the part as surveyed")
    func resumes() {
        var script = Self.resuming()
        _ = script.take()
        script.accept(0, Self.strong)
        #expect(Self.preparation(&script)?.mode == .adopted)
        script.tell(.prepared())
        #expect(script.leases == [0, 1, 2, 3])
        #expect(script.plan?.bytesDone == 3_000_000)
    }

    @Test("After a 200 whose tag equals the If-Range, the request is repeated without If-Range")
    func dislikesIfRange() {
        var script = Self.resuming()
        script.respond(0, .whole(Self.strong))
        script.end(0, .stopped)
        let request = script.order(1)?.request
        #expect(request?.ifRangeFieldValue == nil)
        #expect(request?.rangeFieldValue == "bytes=3000000-")
        script.accept(1, Self.strong)
        #expect(Self.preparation(&script)?.mode == .adopted)
    }

    @Test("A 200 to a resumed range is read as one stream, and compared with the bytes on disk")
    func wholeOnResume() {
        var script = Self.resuming(Self.unproven, missing: [3_000_000..<4_000_000, 5_000_000..<Self.length])
        script.respond(0, .whole(Self.unproven))
        #expect(Self.preparation(&script)?.mode == .adoptedUp(to: 3_000_000))
        script.tell(.prepared())
        #expect(script.leases == [0])
        #expect(script.order(0)?.writesFrom == 3_000_000)
        #expect(script.plan?.missing == [3_000_000..<Self.length])
    }

    @Test("A part of another resource without bytes starts over, so that the manifest names the new one")
    func nothingKept() {
        var saved = Self.strong
        saved.locator = .unrecorded
        var script = Self.resuming(saved, missing: [0..<Self.length])
        var current = Self.strong
        current.locator = .named(ResourceName(requested: "http://host/a", target: "http://host/b"))
        script.accept(0, current)
        #expect(Self.preparation(&script)?.mode == .fresh)
        script.tell(.prepared())
        #expect(script.leases.contains(0))
    }

    @Test("If nothing can be kept, a stream of unknown length is not assumed to be as long as the part")
    func wholeOfUnknownLength() {
        var script = Self.resuming(Self.unproven, missing: [0..<3_000_000])
        let stream = RemoteResource(completeLength: nil, endsWithConnection: true)
        for lease in 0..<2 where script.order(lease)?.request.isRanged == true {
            script.respond(lease, .ignoresRanges("no Content-Range"))
            script.end(lease, .stopped)
        }
        let lease = script.orders.last?.lease.rawValue ?? 0
        script.respond(lease, .whole(stream))
        #expect(Self.preparation(&script)?.mode == .fresh)
        script.tell(.prepared())
        script.progress(lease, to: 2_999_998)
        script.end(lease, .finished)
        #expect(script.plan == nil, "the stream determines the end")
        #expect(script.conclusion == nil)
    }

    @Test("An answer that ends before the gap begins is not used")
    func overlapOnly() {
        var script = Self.resuming(Self.unproven)
        let lowerBound = script.order(0)?.request.lowerBound ?? 0
        script.respond(0, .partial(ByteRange(lowerBound..<(lowerBound + 100)), Self.unproven))
        #expect(Self.preparation(&script) == nil)
    }

    @Test("A changed resource fails the download, and the part is kept")
    func changed() {
        var script = Self.resuming()
        script.disagree("its ETag")
        #expect(script.failure?.code == .changed)
        #expect(!script.take().contains(.discard))
    }

    @Test("A restart after a change keeps the part until the new answer is accepted")
    func restarts() {
        var script = Self.resuming { $0.onChange = .restart }
        _ = script.take()
        script.disagree("its ETag")
        #expect(!script.take().contains { $0.isPrepare })
        let lease = script.leases.last ?? 0
        #expect(script.order(lease)?.request.rangeFieldValue == "bytes=0-")
        script.accept(lease, .tagged("\"b\"", length: 100))
        let preparation = Self.preparation(&script)
        #expect(preparation?.mode == .fresh)
        #expect(preparation?.replaces == true)
    }

    @Test("Bytes fetched after a restart survive a pause")
    func restartThenPause() {
        var script = Self.resuming { $0.onChange = .restart }
        script.respond(0, .changed("its ETag"))
        script.end(0, .finished)
        let resource = RemoteResource.tagged("\"b\"", length: Self.length)
        script.accept(1, resource)
        script.tell(.prepared())
        script.tell(.pause)
        for lease in script.leases { script.end(lease, .revoked) }
        script.tell(.checkpointed(bytes: 100))
        #expect(script.conclusion == .paused)
        script.tell(.resume)
        script.tell(
            .surveyed(.partial(SavedPartial(resource: resource, completeLength: Self.length, missing: [100..<200]))))
        #expect(script.orders.last?.request.lowerBound == 100)
    }

    @Test("A resource that keeps changing fails the download after three restarts")
    func restartsAreFinite() {
        var script = Self.resuming { $0.onChange = .restart }
        var rounds = 0
        while script.conclusion == nil, rounds < 20 {
            rounds += 1
            script.disagree("its ETag")
            script.answerCheckpoints()
            guard script.conclusion == nil, let lease = script.leases.last else { break }
            script.accept(lease, .tagged("\"b\"", length: Self.length))
            script.tell(.prepared())
            script.progress(lease, to: 100)
            script.end(lease, .failed(Failure(.network, "reset", isTransient: true)))
            script.wait(.seconds(1))
        }
        #expect(script.failure?.code == .changed)
        #expect(rounds <= 4)
    }

    @Test("A 416 with another length means that the file changed; with the same length it is a protocol error")
    func unsatisfiable() {
        var script = Self.resuming()
        script.answerComparisons { $0.respond($1, .unsatisfiable(completeLength: 5)) }
        #expect(script.failure?.code == .changed)
        script = Self.resuming()
        script.respond(0, .unsatisfiable(completeLength: Self.length))
        #expect(script.failure?.code == .protocol)
    }

    @Test("A part without gaps is placed once the origin confirms it, without fetching a byte")
    func nothingMissing() {
        var script = Self.resuming(missing: [])
        #expect(script.orders.last?.request.ifNoneMatchFieldValue != nil)
        script.respond(0, .notModified)
        #expect(Self.preparation(&script)?.mode == .adopted)
        script.tell(.prepared())
        #expect(script.take().last?.isPlace == true)
    }

    @Test("A part without gaps but of another version is not placed")
    func completeButOld() {
        var script = Self.resuming(missing: [])
        script.disagree("its validator was another")
        #expect(script.failure?.code == .changed)
    }

    @Test("--continue must fails if there is nothing to resume, --continue no starts over")
    func continuation() {
        var script = Script { $0.continuation = .must }
        script.tell(.surveyed(.nothing))
        #expect(script.failure?.code == .state)
        script = Self.resuming { $0.continuation = .no }
        #expect(script.order(0)?.request.rangeFieldValue == "bytes=0-")
        script.accept(0, Self.strong)
        #expect(Self.preparation(&script)?.mode == .fresh)
    }

    // MARK: A finished file

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

    @Test("A destination that the response names is surveyed again")
    func found() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.accept(0, Self.strong)
        _ = script.take()
        script.tell(
            .found(
                .partial(SavedPartial(resource: Self.strong, completeLength: Self.length, missing: [7..<Self.length]))))
        #expect(script.take() == [.answer(LeaseID(0), .stop)])
        script.end(0, .stopped)
        #expect(script.orders.last?.request.lowerBound == 7)
    }

    @Test("An answer to a request that is none of this download's is told to stop, and changes nothing")
    func foreignAnswer() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        _ = script.take()
        script.tell(
            .responded(LeaseID(7), .partial(ByteRange(0..<10), .tagged("\"a\"", length: 10)), suggestedName: nil))
        #expect(script.take() == [.answer(LeaseID(7), .stop)] && script.plan == nil)
        script.accept(0, .tagged("\"a\"", length: 10))
        #expect(script.take().contains { $0.isPrepare })
    }

    @Test("If a source cannot be reached, the next one is asked at once")
    func nextSource() {
        var machine = GroupStateMachine(limits: .init())
        var settings = DownloadSettings()
        settings.hosts = ["one", "two"]
        let id = DownloadID(0)
        _ = machine.handle(.added(id, settings, seed: 1), now: .seconds(5))
        _ = machine.handle(.download(id, .surveyed(.nothing)), now: .seconds(5))
        let failure = Failure(.network, "no route", isTransient: true)
        let actions = machine.handle(.download(id, .ended(LeaseID(0), .failed(failure))), now: .seconds(6))
        #expect(actions.contains(.download(id, .report(.retrying(failure, attempt: 1, delay: .zero)))))
        #expect(actions.contains { if case .fetch(_, let order) = $0 { order.source == SourceID(1) } else { false } })
    }
}
