import Testing

@testable import SegmentedDownloadCore

/// What connections report, and what is settled after that.
@Suite("Settling what connections report")
struct SettlingTests {
    private static let length: Int64 = 64 << 20
    private static let two = SourceID(1)

    private static func observation(
        _ order: FetchOrder, at position: Int64, received: Int64, isWriting: Bool = false, isHeld: Bool = false
    ) -> LeaseObservation {
        LeaseObservation(
            lease: order.lease, position: position, bytesReceived: received, isWriting: isWriting, isHeld: isHeld)
    }

    // MARK: Observations

    @Test("Bytes that came are counted once, however often a connection is looked at")
    func counted() throws {
        var fetching = Fetching.sample()
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .zero)
        for (position, received) in [(10, 10), (10, 10), (30, 40)] as [(Int64, Int64)] {
            fetching.observe([Self.observation(order, at: position, received: received)], now: .seconds(1))
        }
        #expect(fetching.traffic.bytesReceived == 40 && fetching.lease(order.lease)?.position == 30)
        #expect(fetching.plan.bytesDone == 30)
    }

    @Test("A connection goes on while bytes come or are written, or while a limit of ours holds it back")
    func goesOn() throws {
        for (position, received, isWriting, isHeld, goesOn, isServed) in [
            (0, 0, false, false, false, false), (0, 1, false, false, true, true), (1, 1, false, false, true, true),
            (0, 0, true, false, true, false), (0, 0, false, true, true, true),
        ] as [(Int64, Int64, Bool, Bool, Bool, Bool)] {
            var fetching = Fetching.sample()
            let order = try fetching.asked()
            fetching.accept(order.lease, at: .zero)
            fetching.observe(
                [Self.observation(order, at: position, received: received, isWriting: isWriting, isHeld: isHeld)],
                now: .seconds(1))
            let lease = try #require(fetching.lease(order.lease))
            #expect(lease.progressAt == (goesOn ? .seconds(1) : .zero))
            #expect(fetching.traffic.servedAt == (isServed ? .seconds(1) : .zero))
            #expect(lease.heldAt == (isHeld ? .seconds(1) : nil))
        }
    }

    @Test("A source that brings something has no failures in a row, and one that is only compared has")
    func failures() throws {
        var fetching = Fetching.sample()
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .zero)
        fetching.sources[.first].failures = 3
        fetching.observe([Self.observation(order, at: 0, received: 100)], now: .seconds(1))
        #expect(fetching.sources[.first].failures == 3)
        fetching.observe([Self.observation(order, at: 1, received: 101)], now: .seconds(1))
        #expect(fetching.sources[.first].failures == 0)
    }

    @Test("A rate is measured from the answer on, not from the request, and from a takeover on")
    func meters() throws {
        var fetching = Fetching.sample()
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .seconds(10))
        fetching.bring(order.lease, to: 1_000_000, at: .seconds(11))
        #expect(fetching.lease(order.lease)?.meter.rate == 1e6)
        #expect(fetching.traffic.path.requestCost == 10 && fetching.lease(order.lease)?.headAt == .seconds(10))

        let rest = Self.length - 100_000
        var late = Fetching.sample(length: Self.length, missing: [rest..<Self.length], connections: 2)
        _ = try late.asked()
        late.traffic.path.requestCost = 0.1
        late.traffic.path.ratesBefore = [1e6]
        let hedge = late.nextHedge(now: .seconds(2)) { _ in true }
        let heir = try #require(hedge)
        late.accept(heir.lease, at: .seconds(8))
        _ = late.narrowed(LeaseID(0), to: rest, now: .seconds(9))
        late.observe([Self.observation(heir, at: rest + 50_000, received: 50_000)], now: .seconds(10))
        #expect(late.lease(heir.lease)?.meter.rate == 5e4)
    }

    @Test(
        "A hedge's answer is used only while nothing else is being settled, and while there is something to take over")
    func hedgeAnswers() throws {
        let rest = Self.length - 100_000
        var fetching = Fetching.sample(length: Self.length, missing: [rest..<Self.length], connections: 2)
        _ = try fetching.asked()
        fetching.traffic.path.requestCost = 0.1
        fetching.traffic.path.ratesBefore = [0, 0, 1e6]
        let hedge = fetching.nextHedge(now: .seconds(2)) { _ in true }
        let order = try #require(hedge)
        let answer = RangeResponse.partial(ByteRange(rest..<Self.length), .tagged("\"a\"", length: Self.length))
        let changes: [(inout Fetching) -> Void] = [
            { $0.withdrawals.add([0..<1]) }, { $0.withdrawals.add(.first) },
            { $0.rebalancing.narrowing = .split(into: 1) },
            { $0.rebalancing.narrowing = .takeover(by: LeaseID(9)) }, { $0.mode = .stream },
            { _ = $0.revise(withdrawing: [], remarks: false) },
            { $0.plan.advance($0.leases[0].order.segment, to: Self.length) },
        ]
        for (number, change) in changes.enumerated() {
            var changed = fetching
            change(&changed)
            let actions = changed.responded(order.lease, answer, now: .seconds(3))
            #expect(actions == [.answer(order.lease, .stop)], "change \(number)")
        }
        #expect(fetching.responded(order.lease, answer, now: .seconds(3)) == [.narrow(LeaseID(0), to: rest)])
    }

    // MARK: Samples that end

    @Test("A sample that was called off says nothing; one that stalled is a failure of its source, and so is silence")
    func samples() throws {
        for (end, revocation, failures) in [
            (.revoked, .stalled, 1), (.revoked, .headTooSlow(.seconds(30)), 1), (.revoked, .tooSlow, 0),
            (.revoked, .yielding, 0),
            (.revoked, .stopping, 0), (.finished, nil, 1), (.stopped, nil, 1), (.finished, .stopping, 0),
            (.failed(DownloadError(.network, "reset", isTransient: true)), nil, 1),
        ] as [(LeaseEnd, Lease.Revocation?, Int)] {
            var fetching = Fetching.sample(missing: [1 << 20..<64 << 20], hosts: ["one", "two"])
            let sample = fetching.sample(0..<1000, from: Self.two, now: .zero)
            _ = fetching.responded(
                sample.lease, .partial(ByteRange(0..<1000), .tagged("\"b\"", length: Self.length)), now: .zero)
            fetching.leases[0].revocation = revocation
            _ = fetching.ended(sample.lease, end, now: .zero)
            #expect(fetching.sources[Self.two].failures == failures, "\(end), \(String(describing: revocation))")
            #expect(fetching.sources[Self.two].trust == .unproven && fetching.sources[Self.two].samples.isEmpty)
        }
    }

    @Test("A sample of an unknown source that agrees is noted, and one that was called off meanwhile is not")
    func agreeing() throws {
        for isCalledOff in [false, true] {
            var fetching = Fetching.sample(missing: [1 << 20..<64 << 20], hosts: ["one", "two"])
            let sample = fetching.sample(0..<1000, from: Self.two, now: .zero)
            _ = fetching.responded(
                sample.lease, .partial(ByteRange(0..<1000), .tagged("\"b\"", length: Self.length)), now: .zero)
            fetching.observe([Self.observation(sample, at: 1000, received: 1000)], now: .zero)
            if isCalledOff { fetching.leases[0].revocation = .stopping }
            _ = fetching.ended(sample.lease, .finished, now: .zero)
            #expect(fetching.sources[Self.two].samples == (isCalledOff ? [] : [0]))
        }
    }

    // MARK: Contradictions

    private static func disputed(_ count: Int = 3) -> Fetching {
        var fetching = Fetching.sample(missing: [1 << 20..<64 << 20], hosts: (0..<count).map { "host\($0)" })
        fetching.sources[Self.two].trust = .sampled
        fetching.comparisons.disputes.add(Dispute(differingSource: Self.two, offset: 5, byte: 1))
        return fetching
    }

    @Test("A third source is asked for the byte, once it may be asked")
    func arbiters() throws {
        var fetching = Self.disputed()
        fetching.sources[SourceID(2)].retryAt = .seconds(1)
        var early = fetching
        let none = early.nextArbitration(now: .milliseconds(999)) { _ in true }
        let closed = early.nextArbitration(now: .seconds(1)) { _ in false }
        #expect(none == nil && closed == nil)
        let asked = fetching.nextArbitration(now: .seconds(1)) { _ in true }
        let order = try #require(asked)
        #expect(order.source == SourceID(2) && order.spot == 5..<6)
        #expect(fetching.comparisons.disputes.asked(by: order.lease)?.offset == 5)
        let again = fetching.nextArbitration(now: .seconds(1)) { _ in true }
        #expect(again == nil)
    }

    @Test("Of two the reference is believed, but not while anything else is settled first")
    func decided() {
        let changes: [(inout Fetching) -> Void] = [
            { $0.withdrawals.add(Self.two) }, { $0.withdrawals.add([0..<1]) }, { $0.outcome = .complete },
            { _ = $0.revise(withdrawing: [], remarks: false) }, { $0.comparisons.disputes.ask(LeaseID(9)) },
        ]
        for (number, change) in changes.enumerated() {
            var fetching = Self.disputed(2)
            change(&fetching)
            #expect(
                fetching.settleDisputes().isEmpty && fetching.comparisons.disputes.open.count == 1, "change \(number)")
        }
        var fetching = Self.disputed(2)
        #expect(!fetching.settleDisputes().isEmpty && fetching.comparisons.disputes.isEmpty)
        #expect(fetching.sources[Self.two].trust == .quarantined && fetching.sources[Self.two].overruledAt == 5)
    }

    @Test("A contradiction to a byte that is gone, or is the differing source's own by now, is none")
    func none() {
        for change in [
            { $0.plan.reopen(0..<10) }, { $0.sources.contribute(0..<10, by: Self.two) },
            { $0.sources[Self.two].trust = .quarantined },
        ] as [(inout Fetching) -> Void] {
            var fetching = Self.disputed(2)
            change(&fetching)
            #expect(fetching.settleDisputes().isEmpty && fetching.comparisons.disputes.isEmpty)
        }
    }

    @Test("Who never says is asked ten times, and then the reference is believed")
    func attempts() {
        var fetching = Self.disputed()
        let attempt = { (fetching: inout Fetching) in
            fetching.comparisons.disputes.ask(LeaseID(9))
            fetching.comparisons.disputes.noteUnanswered(isAttempt: true)
        }
        for _ in 1..<Disputes.arbitrationsMax { attempt(&fetching) }
        #expect(fetching.settleDisputes().isEmpty && fetching.comparisons.disputes.open.count == 1)
        attempt(&fetching)
        #expect(!fetching.settleDisputes().isEmpty && fetching.comparisons.disputes.isEmpty)
    }

    // MARK: Failures and refusals

    @Test("A refused range is asked for again a moment later, and three in a row make it one stream")
    func refusedRanges() throws {
        var fetching = Fetching.sample(pieces: 4)
        for count in 1...3 {
            let order = try fetching.asked(at: .seconds(10 * count))
            let actions = fetching.responded(order.lease, .ignoresRanges("no"), now: .seconds(10 * count))
            #expect(fetching.mode == .segmented(rangeRefusals: count) && actions.count == (count == 3 ? 2 : 1))
            let segment = try #require(fetching.plan[order.segment])
            #expect(segment.retryAt == .seconds(10 * count) + fetching.settings.retry.delayBase)
            _ = fetching.ended(order.lease, .stopped, now: .seconds(10 * count))
        }
        let order = try fetching.asked(at: .seconds(100))
        #expect(fetching.mode == .fallback(forgetsFrom: nil) && !order.request.isRanged && order.forgetsFrom == 0)
    }

    @Test("Another validator is asked for again after a while, whether for a piece or for a sample")
    func disagreement() throws {
        var fetching = Fetching.sample()
        for _ in 0..<3 { fetching.sources[.first].deviations.disagreement.note("x") }
        let order = try fetching.asked()
        #expect(order.request.closesConnection)
        _ = fetching.responded(order.lease, .changed("x"), now: .seconds(5))
        #expect(fetching.plan[order.segment]?.retryAt == .seconds(5) + .milliseconds(150) && fetching.outcome == nil)
        var sampling = Fetching.sample(missing: [1 << 20..<64 << 20], hosts: ["one", "two"])
        sampling.sources[Self.two].resource = .tagged("\"b\"", length: Self.length)
        let sample = sampling.sample(0..<1000, from: Self.two, now: .zero)
        _ = sampling.responded(sample.lease, .changed("x"), now: .seconds(5))
        #expect(
            sampling.sources[Self.two].retryAt == .seconds(5)
                && sampling.sources[Self.two].deviations.disagreement.isNew)
        let again = sampling.sample(0..<1000, from: Self.two, now: .zero)
        #expect(again.request.closesConnection && !sample.request.closesConnection)
    }

    @Test("A failure where others were served within the last second is a matter of how many, and is not counted")
    func crowded() throws {
        let failure = DownloadError(.network, "reset", isTransient: true)
        for (servedAt, isServed) in [(9001, true), (9000, false)] {
            var fetching = Fetching.sample(pieces: 4)
            let (one, other) = (try fetching.asked(), try fetching.asked())
            fetching.accept(one.lease, at: .zero)
            fetching.traffic.noteReceived(1, now: .milliseconds(servedAt))
            _ = fetching.ended(other.lease, .failed(failure), now: .seconds(10))
            #expect(fetching.plan[other.segment]?.failures == (isServed ? 0 : 1))
        }
    }

    @Test("A connection that ends early after little is asked again a moment later, after much at once")
    func paced() throws {
        for (bytes, seconds, isPaced) in [
            (65_535, 0.9, true), (65_536, 0.9, false), (65_535, 1.0, false),
        ] as [(Int64, Double, Bool)] {
            var fetching = Fetching.sample()
            let order = try fetching.asked()
            fetching.accept(order.lease, at: .zero)
            let now = Duration.seconds(seconds)
            fetching.bring(order.lease, to: bytes, at: now)
            _ = fetching.ended(order.lease, .finished, now: now)
            let retryAt = fetching.plan[order.segment]?.retryAt
            #expect(retryAt == (isPaced ? now + fetching.settings.retry.delayBase : .zero))
            #expect(fetching.traffic.path.ratesBefore.count == 1)
        }
    }

    // MARK: Proofs

    @Test("Once a part is proved to be of the same file its record names the source that answers now")
    func record() {
        var fetching = Fetching.sample(missing: [1 << 20..<64 << 20])
        fetching.proving.owesRecord = true
        #expect(fetching.mark(of: .first) == 1)
        let actions = fetching.tick(now: .zero)
        #expect(!fetching.proving.owesRecord && fetching.mark(of: .first) == 0)
        #expect(fetching.revision?.remarks == true && fetching.revision?.withdrawn == [] && actions.count == 1)
        _ = fetching.revised()
        #expect(fetching.tick(now: .zero).isEmpty)
        var unproved = Fetching.sample(
            missing: [1 << 20..<64 << 20], written: .init(ranges: [0..<1 << 20]), overlap: 16 << 10)
        unproved.proving.owesRecord = true
        #expect(unproved.tick(now: .zero).isEmpty && unproved.proving.owesRecord)
    }

    @Test("Where nothing that is missing follows what is there, nothing of that can be proved, and it goes")
    func unprovable() {
        var fetching = Fetching.sample(
            length: 200, missing: [0..<100], written: .init(ranges: [100..<200]), overlap: 16 << 10)
        #expect(fetching.awaitsProof && !fetching.canProve)
        _ = fetching.revise(withdrawing: [], remarks: false)
        let actions = fetching.revised()
        #expect(!fetching.awaitsProof && fetching.revision?.withdrawn == [0..<200] && actions.count == 1)
        _ = fetching.revised()
        #expect(fetching.plan.bytesDone == 0 && fetching.revision == nil)
    }

    @Test("A byte that is missing, or about to be withdrawn, contradicts no source")
    func unbelieved() {
        for change in [
            { $0.plan.reopen(0..<10) }, { $0.withdrawals.add([0..<10]) },
            { _ = $0.revise(withdrawing: [5..<6], remarks: false) },
        ] as [(inout Fetching) -> Void] {
            var fetching = Self.disputed()
            fetching.comparisons.disputes.removeAll()
            change(&fetching)
            #expect(
                fetching.differs(5, 1, at: Self.two).isEmpty && fetching.comparisons.disputes.isEmpty
                    && fetching.outcome == nil)
        }
        var fetching = Self.disputed()
        fetching.comparisons.disputes.removeAll()
        _ = fetching.revise(withdrawing: [6..<7], remarks: false)
        #expect(fetching.differs(5, 1, at: Self.two).isEmpty && fetching.comparisons.disputes.open.map(\.offset) == [5])
        var alone = Fetching.sample(missing: [1 << 20..<64 << 20])
        #expect(alone.differs(5, 1, at: .first).isEmpty && alone.outcome != nil)
    }

    @Test("While the reference is being replaced nothing is decided for it")
    func notForTheGone() {
        var fetching = Self.disputed(2)
        fetching.sources[Self.two].resource = .tagged("\"b\"", length: Self.length)
        fetching.sources[.first].trust = .failed
        #expect(
            fetching.isReplacing && fetching.settleDisputes().isEmpty && fetching.comparisons.disputes.open.count == 1)
    }

    @Test("A stream that no longer says its length is asked for again, however often: the one before said it")
    func lengthLost() throws {
        var fetching = Fetching.sample(length: 1000, isSegmented: false)
        fetching.plan = SegmentPlan(completeLength: nil)
        let answer = RangeResponse.whole(RemoteResource(completeLength: nil, endsWithConnection: true))
        for count in 1...Traffic.malformedMax {
            let now = Duration.seconds(60 * count)
            let order = try fetching.asked(at: now)
            _ = fetching.responded(order.lease, answer, now: now)
            #expect(fetching.outcome == nil && fetching.plan[order.segment]?.failures == count)
            _ = fetching.ended(order.lease, .stopped, now: now)
        }
    }

    @Test("With one source and no earlier bytes, contributions are not counted")
    func contributions() {
        var alone = SourceTable(hosts: ["one"])
        alone.contribute(0..<10, by: .first)
        #expect(alone[.first].contributed.isEmpty)
        alone.earlier = [[20..<30]]
        alone.contribute(0..<10, by: .first)
        #expect(alone[.first].contributed == [0..<10])
        var book = SourceTable(hosts: ["one", "two"])
        book.contribute(5..<5, by: .first)
        book.contribute(0..<10, by: .first)
        book.contribute(10..<20, by: .first)
        #expect(book[.first].contributed == [0..<20])
    }

    @Test("Another reference takes over what the old one and those before it brought as bytes of others")
    func newReference() {
        var book = SourceTable(hosts: ["one", "two", "three", "four"])
        book.define(.tagged("\"a\"", length: 100), by: .first, .init(ranges: [0..<10]))
        let (two, three, four) = (SourceID(1), SourceID(2), SourceID(3))
        for id in [two, four] { book[id].trust = .proven }
        book[three].trust = .sampled
        book.contribute(10..<20, by: .first)
        book.contribute(20..<30, by: two)
        book.contribute(30..<40, by: three)
        book[two].samples = [1]
        book.replaceReference(by: three)
        #expect(book.reference == three && book.kept.isEmpty && book.earlier == [[0..<20], [20..<30]])
        #expect(book.ids.map { book[$0].contributed } == [[], [], [30..<40], []])
        #expect(book[two].trust == .unproven && book[four].trust == .unproven && book[two].samples.isEmpty)
    }
}
