import SegmentedDownloadCore
import Testing

@Suite("The first request")
struct ProbingTests {
    private static let length: Int64 = 10 << 20
    private static let strong = RemoteResource.tagged("\"a\"", length: length)

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

    @Test("A content coding is accepted, or refused before anything is prepared", arguments: [true, false])
    func contentCoding(isAccepted: Bool) {
        var script = Script { $0.acceptsContentCodings = isAccepted }
        script.tell(.surveyed(.nothing))
        _ = script.take()
        var resource = Self.strong
        resource.contentEncoding = "gzip"
        script.accept(0, resource)
        #expect(script.failure?.code == (isAccepted ? nil : .protocol))
        #expect(isAccepted || script.failure?.message.contains("gzip") == true)
        #expect(script.take().contains { $0.isPrepare } == isAccepted)
    }

    @Test("A finished file that was stored with a content coding is refused where none is accepted")
    func codedFile() {
        for (isAccepted, isModified) in [(true, false), (false, false), (false, true)] {
            var resource = Self.strong
            resource.contentEncoding = "gzip"
            let length = resource.completeLength ?? 0
            var script = Script { $0.acceptsContentCodings = isAccepted }
            script.tell(.surveyed(.existing(ExistingFile(length: length, record: resource, agreesWithDigests: nil))))
            script.respond(0, isModified ? .whole(resource) : .notModified())
            #expect(script.failure?.code == (isAccepted ? nil : .protocol))
        }
    }

    @Test(
        "A permanent error is final at once",
        arguments: [
            (RangeResponse.rejected(status: 404), DownloadError.Code.server), (.rejected(status: 403), .server),
            (.unauthorized(status: 401, challenge: nil), .auth), (.malformed("CL"), .protocol),
            (.redirected(status: 302, location: "/"), .server),
        ]
    )
    func finalAnswers(response: RangeResponse, code: DownloadError.Code) {
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
            script.end(attempt, .failed(DownloadError(.network, "no such host", isTransient: true)))
            script.wait(.seconds(60))
        }
        #expect(script.failure?.code == .network)
    }

    @Test("A request whose head is late is revoked and repeated")
    func lateHead() {
        var script = Script { $0.headTimeout = .seconds(30) }
        script.tell(.surveyed(.nothing))
        script.wait(.seconds(31))
        #expect(script.take().last == .revoke(LeaseID(0)))
        script.end(0, .revoked)
        script.wait(.seconds(1))
        #expect(script.leases == [1])
    }

    @Test("A head that arrives after the revocation is not used: its connection is being closed")
    func headAfterRevocation() {
        var script = Script { $0.headTimeout = .seconds(30) }
        script.tell(.surveyed(.nothing))
        script.wait(.seconds(31))
        _ = script.take()
        script.accept(0, Self.strong)
        script.end(0, .revoked)
        if script.takePreparation() != nil { script.tell(.prepared()) }
        script.wait(.seconds(1))
        #expect(script.leases == [1], "no lease fetches, and none ever will")
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
        let failure = DownloadError(.network, "no route", isTransient: true)
        let actions = machine.handle(.download(id, .ended(LeaseID(0), .failed(failure))), now: .seconds(6))
        #expect(actions.contains(.download(id, .report(.retrying(failure, attempt: 1, delay: .zero)))))
        #expect(actions.contains { if case .fetch(_, let order) = $0 { order.source == SourceID(1) } else { false } })
    }
}
