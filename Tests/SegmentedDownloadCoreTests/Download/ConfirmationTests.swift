import HTTPTypes
import Testing

@testable import SegmentedDownloadCore

/// The request that shows whether a file changed while its last bytes were being sent.
@Suite("Confirming a file")
struct ConfirmationTests {
    private static let length: Int64 = 100_000

    /// A file of one response, whose last byte arrived some time after its head.
    private static func complete(
        after time: Duration, length: Int64 = Self.length, hosts: [String] = ["one"], isSegmented: Bool = true,
        _ change: (inout DownloadSettings) -> Void = { _ in }
    ) throws -> Fetching {
        var fetching = Fetching.sample(
            length: length, connections: 1, hosts: hosts, isSegmented: isSegmented, change)
        let order = try fetching.asked()
        if isSegmented {
            fetching.accept(order.lease, at: .zero)
        } else {
            _ = fetching.responded(order.lease, .whole(.tagged("\"a\"", length: length)), now: .zero)
        }
        fetching.bring(order.lease, to: length, at: time)
        _ = fetching.ended(order.lease, .finished, now: time)
        return fetching
    }

    /// Answers the next request, which then ends without a byte.
    private static func answer(_ response: RangeResponse, at now: Duration, in fetching: inout Fetching) throws {
        let order = try fetching.asked(at: now)
        _ = fetching.responded(order.lease, response, now: now)
        _ = fetching.ended(order.lease, .stopped, now: now)
    }

    private static let late = Confirmation.exposureMax + .nanoseconds(1)

    @Test("A file whose last byte arrived within a second of the last head is complete")
    func shortFile() throws {
        #expect(try Self.complete(after: Confirmation.exposureMax).outcome == .complete)
        #expect(try Self.complete(after: Self.late).outcome == nil)
    }

    @Test("Many bytes after the last head are confirmed, however fast they arrived")
    func manyBytes() throws {
        let (many, time) = (Confirmation.exposedBytesMax, Duration.milliseconds(1))
        #expect(try Self.complete(after: time, length: many).outcome == .complete)
        #expect(try Self.complete(after: time, length: many + 1).outcome == nil)
        // The head of the third segment's response comes after all of the others' bytes.
        var fetching = Fetching.sample(length: 3 * many, pieces: 3, connections: 2)
        for lease in fetching.openAll() {
            fetching.accept(lease, at: .zero)
            fetching.bring(lease, to: fetching.lease(lease)?.order.limit ?? 0, at: time)
            _ = fetching.ended(lease, .finished, now: time)
        }
        let last = try fetching.asked(at: time)
        fetching.accept(last.lease, at: time)
        fetching.bring(last.lease, to: 3 * many, at: time)
        _ = fetching.ended(last.lease, .finished, now: time)
        #expect(fetching.outcome == .complete)
    }

    @Test("A head does not prove bytes that arrived after its request")
    func lateHead() throws {
        let length = Confirmation.exposedBytesMax + 2
        var fetching = Fetching.sample(length: length, pieces: 2, connections: 2)
        for (lease, end) in zip(fetching.openAll(), [length / 2, length]) {
            fetching.accept(lease, at: .zero)
            fetching.bring(lease, to: end, at: .milliseconds(1))
            _ = fetching.ended(lease, .finished, now: .milliseconds(1))
        }
        #expect(fetching.outcome == nil && fetching.sourceToConfirm == .first)
    }

    @Test("A digest verifies the bytes, and a server without ranges is not asked again")
    func unneeded() throws {
        let digest = try #require(ExpectedDigest(.crc32, hex: "00000000"))
        #expect(try Self.complete(after: Self.late) { $0.digests = [digest] }.outcome == .complete)
        #expect(try Self.complete(after: Self.late, isSegmented: false).outcome == .complete)
    }

    @Test("Asks for the last byte once, and an answer with the same validator completes the file")
    func same() throws {
        var fetching = try Self.complete(after: Self.late)
        let order = try fetching.asked(at: Self.late)
        #expect(order.isSample && order.spot == Self.length - 1..<Self.length)
        #expect(fetching.ask(at: Self.late) == nil)
        fetching.accept(order.lease, at: .seconds(9))
        #expect(fetching.outcome == nil)
        fetching.observe(
            [LeaseObservation(lease: order.lease, position: Self.length, bytesReceived: 1, isWriting: false)],
            now: .seconds(9))
        _ = fetching.ended(order.lease, .finished, now: .seconds(9))
        #expect(fetching.outcome == .complete && fetching.evidence == .validator)
    }

    @Test("A later head proves the bytes that arrived before it")
    func laterHead() throws {
        var fetching = Fetching.sample(length: Self.length, pieces: 2, connections: 2)
        let leases = fetching.openAll()
        fetching.bring(leases[0], to: Self.length / 2, at: .seconds(5))
        _ = fetching.ended(leases[0], .finished, now: .seconds(5))
        _ = fetching.ended(leases[1], .failed(DownloadError(.network, "reset", isTransient: true)), now: .seconds(5))
        let again = try fetching.asked(at: .seconds(60))
        fetching.accept(again.lease, at: .seconds(60))
        fetching.bring(again.lease, to: Self.length, at: .seconds(61))
        _ = fetching.ended(again.lease, .finished, now: .seconds(61))
        #expect(fetching.outcome == .complete)
    }

    @Test("Another validator is a change once no attempt sees the recorded one again")
    func changed() throws {
        var fetching = try Self.complete(after: Self.late)
        var now = Self.late
        for _ in 0..<100 where fetching.outcome == nil {
            now += .seconds(1)
            guard let order = fetching.ask(at: now) else { continue }
            _ = fetching.responded(order.lease, .changed("its tag differs"), now: now)
            _ = fetching.ended(order.lease, .stopped, now: now)
        }
        #expect(fetching.outcome == .changed("its tag differs"))
    }

    @Test("An answer with the recorded validator after one with another may be another node's, and proves nothing")
    func otherNode() throws {
        var fetching = try Self.complete(after: Self.late)
        try Self.answer(.changed("its tag differs"), at: Self.late, in: &fetching)
        #expect(fetching.outcome == nil)
        let again = try fetching.asked(at: .seconds(9))
        fetching.accept(again.lease, at: .seconds(9))
        let received = again.request.upperBound.map { $0 - again.request.lowerBound } ?? 0
        fetching.observe(
            [LeaseObservation(lease: again.lease, position: Self.length, bytesReceived: received, isWriting: false)],
            now: .seconds(9))
        _ = fetching.ended(again.lease, .finished, now: .seconds(9))
        #expect(fetching.outcome == .complete && fetching.evidence == .none)
    }

    @Test("After an answer with another validator, every other request is as the first one was, and its head is enough")
    func asTheFirst() throws {
        var fetching = try Self.complete(after: Self.late)
        let last = Self.length - 1..<Self.length
        var now = Self.late
        for spot in [last, 0..<Self.length, last] {
            now += .seconds(10)
            let order = try fetching.asked(at: now)
            #expect(order.spot == spot)
            _ = fetching.responded(order.lease, .changed("its tag differs"), now: now)
            _ = fetching.ended(order.lease, .stopped, now: now)
        }
        let order = try fetching.asked(at: .seconds(90))
        let whole = ByteRange(0..<Self.length)
        let actions = fetching.responded(
            order.lease, .partial(whole, .tagged("\"a\"", length: Self.length)), now: .seconds(90))
        #expect(actions.contains(.answer(order.lease, .stop)))
        _ = fetching.ended(order.lease, .stopped, now: .seconds(90))
        #expect(fetching.outcome == .complete && fetching.evidence == .none)
    }

    @Test("A server whose heads take longer than an answer is waited for is not asked, and the file is unconfirmed")
    func slowHeads() throws {
        var fetching = Fetching.sample(length: Self.length, connections: 1)
        let order = try fetching.asked()
        fetching.accept(order.lease, at: Confirmation.patience + .seconds(1))
        fetching.bring(order.lease, to: Self.length, at: .seconds(60))
        _ = fetching.ended(order.lease, .finished, now: .seconds(60))
        #expect(fetching.outcome == .complete && fetching.evidence == .none)
    }

    @Test("A refusal leaves the file complete and unconfirmed, a temporary one after a second attempt")
    func refused() throws {
        var fetching = try Self.complete(after: Self.late)
        let order = try fetching.asked(at: Self.late)
        let actions = fetching.responded(order.lease, .rejected(status: 403), now: Self.late)
        #expect(
            actions.contains { action in
                if case .report(.note(let text)) = action { text.contains("would not be noticed") } else { false }
            })
        _ = fetching.ended(order.lease, .stopped, now: Self.late)
        #expect(fetching.outcome == .complete && fetching.evidence == .none)

        fetching = try Self.complete(after: Self.late)
        var now = Self.late
        for attempt in 1...Confirmation.attemptsMax {
            try Self.answer(.refused(status: 503, retryAfter: nil), at: now, in: &fetching)
            #expect((fetching.outcome == .complete) == (attempt == Confirmation.attemptsMax))
            #expect(fetching.ask(at: now) == nil)
            now += Confirmation.patience
        }
        #expect(fetching.evidence == .none)
    }

    @Test("A URL that leads elsewhere, a delay that is too long, or no retries: the file is complete and unconfirmed")
    func unanswered() throws {
        let late = RetryAfter(fieldValue: "6", date: nil, fallbackNow: nil)
        for (response, retries) in [
            (.moved(nil), 3), (.refused(status: 503, retryAfter: late), 3), (.refused(status: 503, retryAfter: nil), 0),
            (.ignoresRanges("it sent something else"), 3), (.unsatisfiable(completeLength: nil), 3),
        ] as [(RangeResponse, Int)] {
            var fetching = try Self.complete(after: Self.late) { $0.options.retries = retries }
            try Self.answer(response, at: Self.late, in: &fetching)
            #expect(fetching.outcome == .complete && fetching.evidence == .none, "\(response)")
        }
    }

    @Test("A failure after an answer with another validator does not hide the change")
    func changedAndRefused() throws {
        var fetching = try Self.complete(after: Self.late)
        try Self.answer(.changed("its tag differs"), at: Self.late, in: &fetching)
        let again = try fetching.asked(at: .seconds(9))
        _ = fetching.responded(again.lease, .rejected(status: 403), now: .seconds(9))
        #expect(fetching.outcome == .changed("its tag differs"))
    }

    @Test("A server with another validator in each answer is not asked many times, and the file is unconfirmed")
    func clocks() throws {
        var fetching = try Self.complete(after: Self.late)
        for count in 1...Disagreement.versionsOfMany {
            #expect(fetching.outcome == nil)
            let now = Duration.seconds(10 * count)
            try Self.answer(.changed("its tag is \(count)"), at: now, in: &fetching)
        }
        #expect(fetching.outcome == .complete && fetching.evidence == .none)
    }

    @Test("A silent server is not waited for, and one that sent the head is not asked again")
    func silent() throws {
        for isAccepted in [false, true] {
            var fetching = try Self.complete(after: Self.late)
            let order = try fetching.asked(at: Self.late)
            if isAccepted { fetching.accept(order.lease, at: Self.late) }
            #expect(fetching.tick(now: Self.late + Confirmation.patience) == [])
            let end = Self.late + Confirmation.patience + .nanoseconds(1)
            #expect(fetching.tick(now: end) == [.revoke(order.lease)])
            _ = fetching.ended(order.lease, .revoked, now: end)
            #expect(fetching.outcome == .complete && fetching.evidence == (isAccepted ? .validator : .none))
        }
    }

    @Test("For a stream the head is enough, whether or not the validator proves the bytes")
    func stream() throws {
        var fetching = try Self.complete(after: Self.late)
        fetching.window = ReadingWindow(id: 1, length: 1 << 20, position: Self.length, isStream: true)
        let order = try fetching.asked(at: Self.late)
        let range = ByteRange(Self.length - 1..<Self.length)
        let actions = fetching.responded(
            order.lease, .partial(range, .tagged("\"a\"", length: Self.length)), now: Self.late)
        #expect(actions == [.answer(order.lease, .stop)])
        _ = fetching.ended(order.lease, .stopped, now: Self.late)
        #expect(fetching.outcome == .complete && fetching.evidence == .validator)
    }

    @Test("A date of the moment is a clock, and no later one shows a change")
    func clock() {
        let date = HTTPDate(fieldValue: "Tue, 14 Nov 2023 22:13:20 GMT")
        let tag = EntityTag(fieldValue: "W/\"a\"")
        #expect(!Validator(entityTag: nil, lastModified: date, isDateWeak: true).showsChange)
        #expect(Validator(entityTag: nil, lastModified: date).showsChange)
        #expect(Validator(entityTag: tag, lastModified: date, isDateWeak: true).showsChange)
        #expect(Validator(tagFields: ["a"], dateFields: []).showsChange)
        #expect(!Validator.none.showsChange)
    }

    @Test("Instead of a range another file counts as a change only if its validator can be compared")
    func page() {
        var request = RangeRequest(
            lowerBound: 9, upperBound: 10, identity: .tagged("\"a\"", length: 10))
        let page = ResponseHead(status: 200, fields: [.contentLength: "18"])
        let version = ResponseHead(status: 200, fields: [.contentLength: "10", .eTag: "\"b\""])
        for confirms in [false, true] {
            request.confirms = confirms
            let isChange = { (head: ResponseHead) in
                if case .changed = RangeResponse(request: request, head: head) { true } else { false }
            }
            #expect(isChange(page) == !confirms && isChange(version))
        }
    }

    @Test("A mirror is asked too, and its change withdraws its bytes")
    func mirrors() throws {
        var fetching = Fetching.sample(length: Self.length, pieces: 2, connections: 2, hosts: ["one", "two"])
        let mirror = SourceID(1)
        fetching.sources[mirror].trust = .proven
        fetching.sources[mirror].resource = .tagged("\"b\"", length: Self.length)
        let first = try fetching.asked()
        fetching.sources[.first].retryAt = .seconds(1)
        let orders = try [first, fetching.asked()]
        fetching.sources[.first].retryAt = .zero
        #expect(orders.map(\.source) == [.first, mirror])
        for order in orders {
            let tag = order.source == mirror ? "\"b\"" : "\"a\""
            _ = fetching.responded(
                order.lease,
                .partial(ByteRange(order.writesFrom..<order.limit), .tagged(tag, length: Self.length)), now: .zero)
            fetching.bring(order.lease, to: order.limit, at: order.source == mirror ? Self.late : .zero)
        }
        for order in orders { _ = fetching.ended(order.lease, .finished, now: Self.late) }
        // Its bytes are compared with the reference's first.
        while let audit = fetching.comparisons.audits.next {
            let order = try fetching.asked(at: Self.late)
            #expect(order.source == .first && order.spot == audit.spot)
            fetching.accept(order.lease, at: Self.late)
            fetching.observe(
                [
                    LeaseObservation(
                        lease: order.lease, position: order.writesFrom, bytesReceived: Int64(audit.spot.count),
                        isWriting: false)
                ], now: Self.late)
            _ = fetching.ended(order.lease, .finished, now: Self.late)
        }
        var now = Self.late
        for _ in 0..<Disagreement.attemptsAtEnd {
            now += .seconds(1)
            let order = try fetching.asked(at: now)
            #expect(order.source == mirror && order.request.confirms)
            _ = fetching.responded(order.lease, .changed("its tag differs"), now: now)
            _ = fetching.ended(order.lease, .stopped, now: now)
        }
        #expect(fetching.sources[mirror].trust == .quarantined && fetching.outcome == nil)
        #expect(fetching.revision?.withdrawn.isEmpty == false)
    }

    @Test("A connection that breaks before the head counts as an attempt, one that breaks after it does not")
    func broken() throws {
        let failure = DownloadError(.network, "reset", isTransient: true)
        var fetching = try Self.complete(after: Self.late)
        var now = Self.late
        for _ in 1...Confirmation.attemptsMax {
            let order = try fetching.asked(at: now)
            _ = fetching.ended(order.lease, .failed(failure), now: now)
            now += Confirmation.patience
        }
        #expect(fetching.outcome == .complete && fetching.evidence == .none)

        fetching = try Self.complete(after: Self.late)
        let order = try fetching.asked(at: Self.late)
        fetching.accept(order.lease, at: .seconds(9))
        _ = fetching.ended(order.lease, .failed(failure), now: .seconds(9))
        #expect(fetching.outcome == .complete && fetching.evidence == .validator)
    }

    @Test("A byte that differs under a validator that proves nothing is a change")
    func otherByte() throws {
        var fetching = try Self.complete(after: Self.late)
        let order = try fetching.asked(at: Self.late)
        fetching.accept(order.lease, at: .seconds(9))
        _ = fetching.ended(order.lease, .differs(at: Self.length - 1, byte: 1), now: .seconds(9))
        #expect(fetching.outcome == .changed("its byte \(Self.length - 1) differs from the one fetched before"))
    }

    @Test("A mirror whose file changed loses its bytes only if some arrived long after its last head")
    func mirror() throws {
        for (time, withdraws) in [(Confirmation.exposureMax, false), (Self.late, true)] {
            var fetching = Fetching.sample(length: Self.length, connections: 2, hosts: ["one", "two"])
            fetching.sources[SourceID(1)].trust = .proven
            fetching.sources[SourceID(1)].resource = .tagged("\"b\"", length: Self.length)
            let order = try fetching.asked()
            #expect(order.source == .first)
            fetching.accept(order.lease, at: .zero)
            fetching.bring(order.lease, to: Self.length / 2, at: time)
            var moved = fetching
            _ = moved.changed("its URL leads to another place now", at: .first, isMoved: true)
            #expect(moved.sources[.first].trust == .failed && moved.withdrawals.isEmpty)
            _ = fetching.changed("its tag differs", at: .first)
            #expect(fetching.sources[.first].trust == (withdraws ? .quarantined : .failed))
            #expect(fetching.withdrawals.isEmpty == !withdraws)
        }
    }
}
