import Testing

@testable import SegmentedDownloadCore

/// Which of several sources is asked, and who defines the file once one is gone.
@Suite("Choosing among sources")
struct SourceChoiceTests {
    private static let two = SourceID(1)
    private static let three = SourceID(2)

    /// Three sources, all of which may bring bytes.
    private static func known(_ count: Int = 3) -> Fetching {
        var fetching = Fetching.sample(hosts: (0..<count).map { "host\($0)" })
        for id in fetching.sources.ids.dropFirst() {
            fetching.sources[id].trust = .sampled
            fetching.sources[id].resource = .tagged("\"a\"", length: 64 << 20)
        }
        return fetching
    }

    private static func best(_ fetching: Fetching, at now: Duration = .zero, closed: String = "") -> SourceID? {
        fetching.bestSource(now: now) { $0 != closed }
    }

    @Test("The fastest is asked, of equals the first, and one that was never measured before all")
    func fastest() {
        var fetching = Self.known()
        #expect(Self.best(fetching) == .first)
        fetching.sources[.first].rate = 1
        #expect(Self.best(fetching) == Self.two)
        fetching.sources[Self.two].rate = 3
        fetching.sources[Self.three].rate = 2
        #expect(Self.best(fetching) == Self.two)
        fetching.sources[Self.three].rate = 3
        #expect(Self.best(fetching) == Self.two)
        fetching.sources[Self.two].rate = 1
        #expect(Self.best(fetching) == Self.three)
    }

    @Test("While the first connection to a source is measured the next goes elsewhere, and then its rate counts")
    func measured() throws {
        var fetching = Self.known(2)
        fetching.comparisons.audits.removeAll()
        fetching.sources[Self.two].rate = 1000
        let order = try fetching.asked()
        #expect(order.source == .first)
        fetching.accept(order.lease, at: .zero)
        #expect(Self.best(fetching) == Self.two)
        fetching.bring(order.lease, to: 1_000_000, at: .seconds(1))
        #expect(Self.best(fetching) == .first)
        // What was measured before counts only while nothing runs.
        fetching.sources[.first].rate = 1
        #expect(Self.best(fetching) == .first)
    }

    @Test("Who has to wait, has no connection free, contradicts or is not known is not asked")
    func notAsked() {
        for (change, best) in [
            ({ $0.sources[.first].retryAt = .seconds(1) }, Self.two),
            ({ $0.sources[.first].trust = .failed }, Self.two),
            ({ $0.sources[.first].trust = .quarantined }, Self.two),
            ({ $0.sources[.first].trust = .unproven }, Self.two),
            ({ $0.comparisons.disputes.add(Dispute(differingSource: .first, offset: 0, byte: 1)) }, Self.two),
            ({ _ in }, .first),
        ] as [((inout Fetching) -> Void, SourceID)] {
            var fetching = Self.known()
            change(&fetching)
            #expect(Self.best(fetching) == best)
        }
        #expect(Self.best(Self.known(), closed: "host0") == Self.two)
        var later = Self.known()
        later.sources[.first].retryAt = .seconds(1)
        #expect(Self.best(later, at: .seconds(1)) == .first)
        #expect(Self.best(Self.known(1), closed: "host0") == .first, "there is no choice")
    }

    @Test("One that is not known may bring one stream, or begin a file of which nothing is there")
    func unknown() {
        var fetching = Fetching.sample(hosts: ["one", "two"])
        fetching.sources[.first].trust = .failed
        #expect(Self.best(fetching) == Self.two, "no source has delivered bytes")
        var done = Fetching.sample(missing: [10..<64 << 20], hosts: ["one", "two"])
        done.sources[.first].trust = .failed
        #expect(Self.best(done) == nil)
        done.mode = .stream
        #expect(Self.best(done) == Self.two)
    }

    // MARK: Sources that go

    /// The state after a number of answers in a row from another place than before, each of a new request.
    private static func afterMoves(
        _ count: Int, of difference: String? = nil, _ start: Fetching, from source: SourceID = .first,
        at time: Duration = .zero
    ) throws -> Fetching {
        var fetching = start
        for number in 0..<count {
            let now = time + .seconds(number)
            fetching.sources[source].retryAt = .zero
            let host = fetching.sources[source].host
            let next = fetching.nextFetch(now: now) { $0 == host }
            let order = try #require(next)
            #expect(order.source == source)
            _ = fetching.responded(order.lease, .moved(difference), now: now)
            _ = fetching.ended(order.lease, .stopped, now: now)
        }
        return fetching
    }

    @Test("A URL that leads elsewhere is asked again; then the bytes are compared, or the file has changed")
    func moved() throws {
        let last = Disagreement.attemptsForPlace
        #expect(try Self.afterMoves(last - 1, Fetching.sample()).outcome == nil)
        #expect(try Self.afterMoves(last, Fetching.sample()).outcome == .moved)
        #expect(try Self.afterMoves(1, of: "another length", Fetching.sample()).outcome == .changed("another length"))
        let window = ReadingWindow(id: 1, length: 1 << 20, position: 0, isStream: true)
        #expect(
            try Self.afterMoves(1, Fetching.sample(window: window)).outcome
                == .changed("its URL leads to another place now"))
        let read = ReadingWindow(id: 1, length: 1 << 20, position: 0, isStream: false)
        #expect(try Self.afterMoves(last, Fetching.sample(window: read)).outcome == .moved)
        let mirrored = try Self.afterMoves(1, Self.known(2), from: Self.two)
        #expect(mirrored.outcome == nil && mirrored.sources[Self.two].trust == .failed)
    }

    @Test("An answer from the same place as before ends the count")
    func movedBack() throws {
        var fetching = try Self.afterMoves(Disagreement.attemptsForPlace - 1, Fetching.sample())
        let order = try fetching.asked(at: .seconds(10))
        fetching.accept(order.lease, at: .seconds(10))
        _ = fetching.ended(
            order.lease, .failed(DownloadError(.network, "broken", isTransient: true)), now: .seconds(10))
        #expect(try Self.afterMoves(Disagreement.attemptsForPlace - 1, fetching, at: .seconds(100)).outcome == nil)
    }

    @Test("A change applies to the file if no other source is left, and otherwise to the source")
    func changed() {
        var alone = Fetching.sample()
        #expect(alone.changed("x", at: .first).isEmpty && alone.outcome == .changed("x"))
        var mirrored = Self.known(2)
        #expect(!mirrored.changed("x", at: .first).isEmpty)
        #expect(mirrored.outcome == nil && mirrored.sources[.first].trust == .failed)
        var unknown = Fetching.sample(hosts: ["one", "two"])
        #expect(unknown.changed("x", at: .first).isEmpty && unknown.outcome == .changed("x"))
        var other = Fetching.sample(hosts: ["one", "two"])
        _ = other.changed("x", at: Self.two)
        #expect(other.outcome == nil && other.sources[Self.two].trust == .failed)
    }

    @Test("The last source that is lost is the end")
    func lost() {
        let failure = DownloadError(.network, "gone", isTransient: false)
        var fetching = Self.known(2)
        _ = fetching.loseSource(Self.two, failure)
        #expect(fetching.outcome == nil)
        #expect(fetching.loseSource(.first, failure).isEmpty && fetching.outcome == .failed(failure))
    }

    @Test("A reference that is gone is replaced by one that is known, and what was to be compared is decided anew")
    func replaced() {
        var fetching = Self.known()
        fetching.proving.owesRecord = true
        fetching.comparisons.audits.choose([Audit(spot: 0..<1, contributor: .source(.first))])
        #expect(fetching.replaceReference().isEmpty, "it is there")
        fetching.sources[.first].trust = .failed
        #expect(fetching.isReplacing)
        let actions = fetching.replaceReference()
        #expect(fetching.sources.reference == Self.two && fetching.comparisons.audits.isEmpty && !fetching.isReplacing)
        #expect(!fetching.comparisons.audits.areChosen && !fetching.proving.owesRecord)
        #expect(
            actions == [
                .revise(
                    Revision(
                        withdrawn: [], reference: Self.two, resource: .tagged("\"a\"", length: 64 << 20), remarks: true,
                        keepsRecord: false))
            ])
        #expect(fetching.replaceReference().isEmpty, "one revision at a time")
    }

    @Test("A source that has contradicted another becomes the reference only if no other one can")
    func impartial() {
        var fetching = Self.known()
        fetching.sources[.first].trust = .failed
        fetching.comparisons.disputes.add(Dispute(differingSource: Self.two, offset: 0, byte: 1))
        _ = fetching.replaceReference()
        #expect(fetching.sources.reference == Self.three)
        var both = Self.known()
        both.sources[.first].trust = .failed
        for differingSource in [Self.two, Self.three] {
            both.comparisons.disputes.add(Dispute(differingSource: differingSource, offset: 0, byte: 1))
        }
        _ = both.replaceReference()
        #expect(both.sources.reference == Self.two)
        var proven = Self.known()
        proven.sources[.first].trust = .failed
        proven.sources[Self.three].trust = .proven
        _ = proven.replaceReference()
        #expect(proven.sources.reference == Self.three)
    }

    @Test("Before the reference is replaced those end who write bytes as the reference's")
    func endsUnmarked() throws {
        var fetching = Self.known(2)
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .zero)
        fetching.sources[.first].trust = .failed
        #expect(fetching.replaceReference() == [.revoke(order.lease)])
        #expect(fetching.sources.reference == .first)
        #expect(fetching.replaceReference().isEmpty)
        _ = fetching.ended(order.lease, .revoked, now: .zero)
        #expect(fetching.sources.reference == Self.two && fetching.revision != nil)
    }

    @Test("Withdrawn bytes are missing again, contradict no source, and are compared again at the end")
    func revised() {
        var fetching = Self.known(2)
        fetching.plan = SegmentPlan(completeLength: 64 << 20, missing: [1 << 20..<64 << 20])
        fetching.comparisons.audits.choose([])
        for offset: Int64 in [15, 20] {
            fetching.comparisons.disputes.add(Dispute(differingSource: Self.two, offset: offset, byte: 1))
        }
        _ = fetching.revise(withdrawing: [10..<20], remarks: false)
        _ = fetching.revised()
        #expect(fetching.revision == nil && fetching.plan.missing.first == 10..<20)
        #expect(!fetching.comparisons.audits.areChosen && fetching.comparisons.disputes.open.map(\.offset) == [20])
    }

    @Test("A culprit's bytes go once none of its connections writes, and what it agreed with counts no more")
    func withdrawn() {
        var fetching = Self.known()
        fetching.plan = SegmentPlan(completeLength: 64 << 20, missing: [1 << 20..<64 << 20])
        fetching.sources.contribute(0..<100, by: Self.two)
        fetching.sources[Self.three].samples = [50, 200]
        let actions = fetching.quarantine(Self.two, "it lies")
        #expect(fetching.sources[Self.two].trust == .quarantined && fetching.withdrawals.sources.isEmpty)
        #expect(fetching.sources[Self.two].contributed.isEmpty && fetching.sources[Self.three].samples == [200])
        #expect(fetching.revision?.withdrawn == [0..<100] && fetching.revision?.remarks == false)
        #expect(actions.contains(.report(.note("it lies"))))
        #expect(fetching.quarantine(Self.two).isEmpty, "once is enough")
    }

    @Test("A culprit that has brought nothing costs nothing")
    func nothingWithdrawn() {
        var fetching = Self.known()
        _ = fetching.quarantine(Self.two)
        #expect(fetching.revision == nil && fetching.withdrawals.sources.isEmpty && fetching.outcome == nil)
    }

    @Test("A reference found wrong is replaced and all it brought withdrawn, at once")
    func wrongReference() {
        var fetching = Self.known()
        fetching.plan = SegmentPlan(completeLength: 64 << 20, missing: [1 << 20..<64 << 20])
        fetching.sources.contribute(0..<100, by: .first)
        fetching.proving.owesRecord = true
        fetching.comparisons.audits.choose([Audit(spot: 0..<1, contributor: .source(Self.three))])
        _ = fetching.quarantine(.first)
        #expect(fetching.sources.reference == Self.two && fetching.comparisons.audits.isEmpty)
        #expect(!fetching.comparisons.audits.areChosen && !fetching.proving.owesRecord)
        #expect(fetching.revision?.withdrawn == [0..<100] && fetching.revision?.remarks == true)
    }

    @Test("Where all sources are found wrong the download has failed")
    func allWrong() {
        var fetching = Self.known(2)
        _ = fetching.quarantine(Self.two)
        _ = fetching.quarantine(.first)
        guard case .failed(let failure)? = fetching.outcome else {
            Issue.record("it continues without a source")
            return
        }
        #expect(failure.code == .integrity)
    }

    @Test("Trusting one source alone withdraws the bytes of the others, and asks no other source")
    func trusted() throws {
        var fetching = Self.known()
        fetching.sources.contribute(0..<100, by: Self.two)
        fetching.outcome = .complete
        fetching.window = ReadingWindow(id: 7, length: 1 << 20, position: 0, isStream: false)
        let actions = fetching.trustOnly(Self.two)
        #expect(actions != nil && fetching.outcome == nil && fetching.sources.reference == Self.two)
        #expect(fetching.window == nil, "its reader has ended")
        #expect(fetching.revision?.withdrawn == [100..<64 << 20])
        #expect(fetching.sources.ids.map { fetching.sources[$0].isGone } == [true, false, true])
        var whole = Self.known()
        whole.sources.contribute(0..<64 << 20, by: Self.two)
        #expect(whole.trustOnly(Self.two) == nil, "it brought all of it")
        var unheard = Self.known()
        unheard.sources[Self.two].resource = nil
        #expect(unheard.trustOnly(Self.two) == nil)
    }

    // MARK: Connections whose segment is another's

    /// A connection whose segment was taken over whole by another, which is running.
    private static func outrun() throws -> (Fetching, late: LeaseID) {
        let length: Int64 = 64 << 20
        var fetching = Fetching.sample(length: length, missing: [length - 100_000..<length], connections: 2)
        let late = try fetching.asked()
        fetching.traffic.path.requestCost = 0.1
        fetching.traffic.path.ratesBefore = [1e6]
        let hedge = fetching.nextHedge(now: .seconds(2)) { _ in true }
        let order = try #require(hedge)
        fetching.accept(order.lease, at: .seconds(2))
        #expect(fetching.rebalancing.narrowing == .takeover(by: order.lease))
        _ = fetching.narrowed(late.lease, to: length - 100_000, now: .seconds(2))
        #expect(fetching.rebalancing.narrowing == nil && fetching.lease(order.lease)?.wasAccepted == true)
        #expect(fetching.lease(late.lease)?.revocation == .outrun)
        return (fetching, late.lease)
    }

    @Test("The end of one that was outrun is the end of nothing, but for what it says of disk and file")
    func outrunEnds() throws {
        let (fetching, late) = try Self.outrun()
        let failure = DownloadError(.network, "reset", isTransient: true)
        for (end, outcome) in [
            (.revoked, nil), (.failed(failure), nil), (.finished, nil),
            (.failed(DownloadError(.changed, "another tag")), .changed("another tag")),
            (.storageFailed(failure), .failed(failure)),
        ] as [(LeaseEnd, Fetching.Outcome?)] {
            var ended = fetching
            _ = ended.ended(late, end, now: .seconds(3))
            #expect(ended.outcome == outcome && ended.leases.count == 1)
        }
    }

    @Test("A hedge that fails before it has taken over is not followed by another for a second")
    func failedHedge() throws {
        let length: Int64 = 64 << 20
        var fetching = Fetching.sample(length: length, missing: [length - 100_000..<length], connections: 2)
        _ = try fetching.asked()
        fetching.traffic.path.requestCost = 0.1
        fetching.traffic.path.ratesBefore = [1e6]
        let hedge = fetching.nextHedge(now: .seconds(2)) { _ in true }
        let order = try #require(hedge)
        _ = fetching.ended(order.lease, .failed(DownloadError(.network, "reset", isTransient: true)), now: .seconds(3))
        #expect(
            fetching.rebalancing.hedging.nextAt == .seconds(4) && fetching.outcome == nil && fetching.leases.count == 1)
    }
}
