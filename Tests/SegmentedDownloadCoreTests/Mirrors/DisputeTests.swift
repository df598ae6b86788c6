import Testing

@testable import SegmentedDownloadCore

@Suite("Sources with different bytes")
struct DisputeTests {
    private static let length: Int64 = 64 << 20
    private static let resource = RemoteResource.tagged("\"a\"", length: Self.length)

    /// A source answers a comparison: with equal bytes, or with a difference at the first.
    private static func answer(_ script: inout Script, _ order: FetchOrder, agreeing: Bool) {
        let count = (order.request.upperBound ?? Self.length) - order.request.lowerBound
        script.accept(order.lease.rawValue, Self.resource)
        script.progress(order.lease.rawValue, to: order.writesFrom, received: count)
        script.end(order.lease.rawValue, agreeing ? .finished : .differs(at: order.request.lowerBound, byte: 1))
    }

    /// Three mirrors and the first source, which has delivered 1 MiB; a part of it is sampled from each mirror.
    private static func sampling() throws -> Script {
        var script = Script.fetching(.exactly(5), length: Self.length) { $0.hosts = ["a", "b", "c", "d"] }
        script.progress(0, to: 1 << 20)
        script.wait(.milliseconds(100))
        // A free connection requests the next comparison.
        for order in script.orders.filter({ !$0.isSample && $0.lease != LeaseID(0) }).prefix(2) {
            script.accept(order.lease.rawValue, Self.resource)
            script.complete(order.lease.rawValue)
        }
        try #require(Self.samples(script).map(\.source) == [SourceID(1), SourceID(2), SourceID(3)])
        return script
    }

    private static func samples(_ script: Script) -> [FetchOrder] { script.orders.filter(\.isSample) }

    /// Carries out the ordered withdrawals.
    private static func revise(_ script: inout Script) {
        let isOrdered = script.take().contains { if case .revise = $0 { true } else { false } }
        if isOrdered { script.tell(.revised) }
    }

    @Test("A mirror that contradicts during an open dispute is compared again after it")
    func twoAccusers() throws {
        var script = try Self.sampling()
        let samples = Self.samples(script)
        Self.answer(&script, samples[0], agreeing: false)
        Self.answer(&script, samples[2], agreeing: false)
        // The second mirror is the arbiter, and contradicts the first source. Both differing sources are compared again.
        Self.answer(&script, samples[1], agreeing: true)
        let arbitration = try #require(Self.samples(script).last)
        #expect(arbitration.source == SourceID(2) && arbitration.spot?.count == 1)
        Self.answer(&script, arbitration, agreeing: false)
        for lease in script.leases { script.end(lease, .revoked) }
        var asked = Set<SourceID>()
        for _ in 0..<8 {
            Self.revise(&script)
            for order in script.orders {
                asked.insert(order.source)
                if order.isSample {
                    Self.answer(&script, order, agreeing: true)
                } else {
                    script.accept(order.lease.rawValue, Self.resource)
                    script.progress(order.lease.rawValue, to: order.writesFrom + (1 << 20))
                }
            }
            script.wait(.milliseconds(100))
        }
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["a"])
        #expect(script.conclusion == nil)
        #expect(asked == [SourceID(1), SourceID(2), SourceID(3)])
    }

    @Test("If an arbiter sends a third byte, the reference is right")
    func threeOpinions() throws {
        var script = Script.fetching(.exactly(3), length: Self.length) { $0.hosts = ["a", "b", "c"] }
        script.progress(0, to: 1 << 20)
        script.wait(.milliseconds(100))
        let sample = try #require(Self.samples(script).first)
        Self.answer(&script, sample, agreeing: false)
        let arbitration = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        script.accept(arbitration.lease.rawValue, Self.resource)
        script.progress(arbitration.lease.rawValue, to: arbitration.writesFrom, received: 1)
        script.end(arbitration.lease.rawValue, .differs(at: arbitration.request.lowerBound, byte: 2))
        for _ in 0..<4 {
            Self.revise(&script)
            script.wait(.milliseconds(100))
        }
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["b", "c"])
        #expect(script.conclusion == nil && script.orders.allSatisfy { $0.source == .first })
    }

    @Test("Bytes of an earlier run that only a rejected reference agreed with are fetched again")
    func unfounded() throws {
        var fetching = Fetching.sample(
            length: 100, missing: [50..<100], hosts: ["a", "b", "c"],
            written: .init(ranges: [0..<50], marked: [MarkedRanges(mark: 9, ranges: [0..<50])]))
        fetching.comparisons.audits.removeAll()
        fetching.sources[.first].trust = .quarantined
        _ = fetching.differs(10, 1, at: SourceID(1))
        // The third source may arbitrate, as the reference cannot.
        let order = try fetching.asked()
        #expect(order.source == SourceID(2) && order.request.lowerBound == 10 && order.request.upperBound == 11)
        let dispute = try #require(fetching.comparisons.disputes.open.first)
        let lease = try #require(fetching.lease(order.lease))
        var other = fetching
        _ = fetching.arbitrated(dispute, by: lease, .differs(2))
        #expect(fetching.revision?.withdrawn == [0..<50])
        _ = other.arbitrated(dispute, by: lease, .agrees)
        #expect(other.sources[SourceID(1)].trust == .quarantined)
    }

    @Test("If an arbiter cannot be asked now, another one is asked, and no source is rejected meanwhile")
    func arbiterFails() throws {
        var script = try Self.sampling()
        let samples = Self.samples(script)
        for sample in samples[1...] { Self.answer(&script, sample, agreeing: true) }
        Self.answer(&script, samples[0], agreeing: false)
        let arbitration = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        script.end(arbitration.lease.rawValue, .failed(DownloadError(.network, "it broke", isTransient: true)))
        // The next free connection asks.
        script.complete(0)
        let again = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        #expect(again.source == SourceID(3) && again.spot == arbitration.spot)
        Self.answer(&script, again, agreeing: false)
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["a"])
    }

    @Test("The only arbiter is asked again when that is allowed")
    func onlyArbiter() throws {
        var script = Script.fetching(.exactly(3), length: Self.length) { $0.hosts = ["a", "b", "c"] }
        script.progress(0, to: 1 << 20)
        script.wait(.milliseconds(100))
        Self.answer(&script, try #require(Self.samples(script).first), agreeing: false)
        let arbitration = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        let busy = DownloadError(.server, "busy", isTransient: true, retryAfter: .seconds(2))
        script.end(arbitration.lease.rawValue, .failed(busy))
        script.complete(0)
        script.wait(.seconds(1))
        #expect(!Self.samples(script).contains { $0.spot?.count == 1 })
        script.wait(.seconds(2))
        for order in script.orders.prefix(1) { script.complete(order.lease.rawValue) }
        let again = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        #expect(again.source == arbitration.source && again.spot == arbitration.spot)
        #expect(script.reports(" has other bytes").isEmpty)
    }

    /// The same after all three mirrors agreed; each fetches bytes after those of another.
    private static func mirroring() throws -> Script {
        var script = try Self.sampling()
        for _ in 0..<12 {
            guard let sample = Self.samples(script).first else { break }
            Self.answer(&script, sample, agreeing: true)
        }
        try #require(Self.samples(script).isEmpty)
        return script
    }

    /// The next request for bytes from a source.
    private static func order(_ script: inout Script, from source: SourceID) -> FetchOrder? {
        for _ in 0..<20 {
            if let order = script.orders.first(where: { $0.source == source && !$0.isSample }) { return order }
            guard let other = script.orders.last(where: { $0.source == .first }) else { return nil }
            script.accept(other.lease.rawValue, Self.resource)
            script.complete(other.lease.rawValue)
        }
        return nil
    }

    @Test("A second contradiction is decided after the first, and its source delivers nothing before")
    func queued() throws {
        var script = try Self.mirroring()
        // Two mirrors differ from a byte that the first source delivered.
        for number in [1, 2] {
            let order = try #require(Self.order(&script, from: SourceID(number)))
            script.accept(order.lease.rawValue, Self.resource)
            script.end(order.lease.rawValue, .differs(at: Int64(number), byte: 1))
        }
        for number in [1, 2] {
            let arbitration = try #require(Self.samples(script).first)
            #expect(arbitration.spot?.lowerBound == Int64(number) && Self.samples(script).count == 1)
            #expect(!script.orders.contains { $0.source == SourceID(2) && $0.lease > arbitration.lease })
            // The byte on disk is right each time.
            Self.answer(&script, arbitration, agreeing: true)
            for order in script.orders where order.source == SourceID(number) {
                script.end(order.lease.rawValue, .revoked)
            }
            Self.revise(&script)
            script.wait(.milliseconds(100))
        }
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["b", "c"])
    }

    @Test("A comparison with bytes being withdrawn rejects no source")
    func condemned() throws {
        var script = try Self.mirroring()
        let first = try #require(Self.order(&script, from: SourceID(1)))
        script.accept(first.lease.rawValue, Self.resource)
        let second = try #require(Self.order(&script, from: SourceID(2)))
        script.accept(second.lease.rawValue, Self.resource)
        script.end(first.lease.rawValue, .differs(at: 1, byte: 1))
        let arbitration = try #require(Self.samples(script).first)
        Self.answer(&script, arbitration, agreeing: false)
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["a"])
        // A connection that started with the first source's bytes finds the same difference before and after the
        // withdrawal.
        script.end(second.lease.rawValue, .differs(at: 1, byte: 1))
        for lease in script.leases { script.end(lease, .revoked) }
        Self.revise(&script)
        for _ in 0..<8 {
            script.wait(.milliseconds(100))
            Self.revise(&script)
        }
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["a"])
        #expect(Self.samples(script).allSatisfy { $0.spot?.count != 1 } && script.conclusion == nil)
    }

    @Test("A brief network outage decides nothing")
    func outage() throws {
        var script = try Self.sampling()
        let samples = Self.samples(script)
        for sample in samples[1...] { Self.answer(&script, sample, agreeing: true) }
        Self.answer(&script, samples[0], agreeing: false)
        let broken = LeaseEnd.failed(DownloadError(.network, "no way there", isTransient: true))
        var count = 0
        for _ in 0..<1000 where count <= Disputes.arbitrationsMax + 2 {
            for order in script.orders {
                if order.spot?.count == 1 { count += 1 }
                script.end(order.lease.rawValue, broken)
            }
            script.wait(.milliseconds(100))
        }
        #expect(count > Disputes.arbitrationsMax)
        #expect(script.reports(" has other bytes").isEmpty)
    }

    @Test("Several connections of one source may find that an earlier run's bytes belong to another file")
    func severalFind() throws {
        let there = [0..<(Self.length / 4), (Self.length / 2)..<(Self.length * 3 / 4)]
        let saved = SavedPartial(
            resource: Self.resource, completeLength: Self.length,
            missing: [there[0].upperBound..<there[1].lowerBound, there[1].upperBound..<Self.length], reference: nil,
            marked: [MarkedRanges(mark: 9, ranges: there)])
        var script = Script(.exactly(2)) { $0.hosts = ["a"] }
        script.tell(.surveyed(.partial(saved)))
        script.accept(try #require(script.orders.first).lease.rawValue, Self.resource)
        script.tell(.prepared())
        let leases = script.leases
        try #require(leases.count == 2)
        for lease in leases.dropFirst() { script.accept(lease, Self.resource) }
        for (lease, range) in zip(leases, there) { script.end(lease, .differs(at: range.upperBound - 1, byte: 1)) }
        script.tell(.checkpointed(bytes: 0))
        #expect(script.conclusion == nil)
        let probe = try #require(script.orders.last)
        #expect(probe.request == RangeRequest())
        script.accept(probe.lease.rawValue, Self.resource)
        let preparation = script.take().compactMap {
            if case .prepare(let preparation) = $0 { preparation } else { nil }
        }
        #expect(preparation.last?.setsAside == true && preparation.last?.mode == .fresh)
    }

    @Test("An arbiter that never delivers is given up after ten requests")
    func endlessArbiter() throws {
        var script = Script.fetching(.exactly(3), length: Self.length) { $0.hosts = ["a", "b", "c"] }
        script.progress(0, to: 1 << 20)
        script.wait(.milliseconds(100))
        let doubt = try #require(Self.samples(script).first)
        Self.answer(&script, doubt, agreeing: false)
        var count = 0
        // The request for the last byte confirms the file.
        let isArbitration = { (order: FetchOrder) in
            order.spot?.count == 1 && order.spot?.upperBound != Self.length
        }
        while let order = Self.samples(script).first(where: isArbitration), count < 100 {
            count += 1
            // One byte arrives each time, then nothing.
            script.accept(order.lease.rawValue, Self.resource)
            script.progress(order.lease.rawValue, to: order.writesFrom, received: 1)
            script.end(order.lease.rawValue, .failed(DownloadError(.network, "it broke", isTransient: true)))
            script.wait(.seconds(300))
            for order in script.orders where !order.isSample { script.complete(order.lease.rawValue) }
        }
        #expect(count == Disputes.arbitrationsMax)
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["b"])
    }

    @Test("If no other source can be compared with, one that keeps refusing fails the download")
    func lastComparer() throws {
        var script = Script(.exactly(1)) { $0.hosts = ["a"] }
        let there = 0..<(Self.length - 4096)
        let saved = SavedPartial(
            resource: Self.resource, completeLength: Self.length, missing: [there.upperBound..<Self.length],
            marked: [MarkedRanges(mark: 9, ranges: [there])])
        script.tell(.surveyed(.partial(saved)))
        let probe = try #require(script.orders.first)
        script.accept(probe.lease.rawValue, Self.resource)
        script.tell(.prepared())
        script.progress(probe.lease.rawValue, to: Self.length)
        script.end(probe.lease.rawValue, .finished)
        var count = 0
        while let order = Self.samples(script).first, count < 100 {
            count += 1
            script.respond(order.lease.rawValue, .refused(status: 503, retryAfter: nil))
            script.end(order.lease.rawValue, .stopped)
            script.wait(.seconds(60))
        }
        // The first one does not count, because bytes arrived just before.
        #expect(count == DownloadSettings().retry.retriesMax + 2)
        // The checkpoint that was due meanwhile, and the last one.
        for _ in 0..<2 { script.tell(.checkpointed(bytes: Self.length)) }
        #expect(script.failure?.status == 503)
    }

    @Test("If the arbiter fails, another one is asked")
    func arbiterGone() throws {
        var script = try Self.sampling()
        let samples = Self.samples(script)
        for sample in samples[1...] { Self.answer(&script, sample, agreeing: true) }
        Self.answer(&script, samples[0], agreeing: false)
        let arbitration = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        script.respond(arbitration.lease.rawValue, .rejected(status: 404))
        script.end(arbitration.lease.rawValue, .stopped)
        script.wait(.milliseconds(100))
        let again = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        #expect(![arbitration.source, samples[0].source, .first].contains(again.source))
    }

    @Test("A mirror whose dispute no arbiter could decide is compared again after the contradicted bytes are withdrawn")
    func readmitted() throws {
        var script = Script(.exactly(2)) { $0.hosts = ["a", "b", "c"] }
        let earlier = MarkedRanges(mark: 9, ranges: [0..<(Self.length / 2)])
        let saved = SavedPartial(
            resource: Self.resource, completeLength: Self.length, missing: [(Self.length / 2)..<Self.length],
            marked: [earlier])
        script.tell(.surveyed(.partial(saved)))
        let probe = try #require(script.orders.first)
        script.accept(probe.lease.rawValue, Self.resource)
        script.tell(.prepared())
        // The first source fails before it can arbitrate on a byte of an earlier run.
        let doubt = try #require(Self.samples(script).first)
        #expect(doubt.source == SourceID(1))
        script.end(probe.lease.rawValue, .failed(DownloadError(.server, "gone")))
        Self.answer(&script, doubt, agreeing: false)
        let arbitration = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        #expect(arbitration.source == SourceID(2))
        Self.answer(&script, arbitration, agreeing: true)
        script.wait(.milliseconds(100))
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["b"])
        // The third source continues, and contradicts the end of the earlier run's bytes.
        for _ in 0..<40 {
            guard let order = script.orders.first else { break }
            #expect(order.source == SourceID(2))
            let isAudit = order.isSample && script.plan?.isComplete == true
            if order.isSample {
                Self.answer(&script, order, agreeing: !isAudit)
            } else {
                script.accept(order.lease.rawValue, Self.resource)
                script.complete(order.lease.rawValue)
            }
            Self.revise(&script)
            script.wait(.milliseconds(100))
            if isAudit { break }
        }
        #expect(script.reports(" is compared again").map { $0.prefix(1) } == ["b"])
        #expect(script.conclusion == nil)
    }

    @Test("A byte that is not on disk contradicts no source")
    func notOnDisk() throws {
        for (offset, isDispute) in [(999, true), (1000, false)] as [(Int64, Bool)] {
            var fetching = Fetching.sample(hosts: ["one", "two", "three"])
            fetching.bring(try fetching.asked().lease, to: 1000, at: .seconds(1))
            _ = fetching.differs(offset, 1, at: SourceID(1))
            #expect(fetching.comparisons.disputes.contains(differingSource: SourceID(1)) == isDispute)
            #expect(fetching.outcome == nil)
        }
    }
}
