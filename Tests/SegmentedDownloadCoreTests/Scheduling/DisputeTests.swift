import Testing

@testable import SegmentedDownloadCore

@Suite("Sources that contradict each other")
struct DisputeTests {
    private static let length: Int64 = 64 << 20
    private static let resource = RemoteResource.tagged("\"a\"", length: Self.length)

    /// A source has answered what it was asked for a comparison: with the same bytes, or with another at the first.
    private static func answer(_ script: inout Script, _ order: FetchOrder, agreeing: Bool) {
        let count = (order.request.upperBound ?? Self.length) - order.request.lowerBound
        script.accept(order.lease.rawValue, Self.resource)
        script.progress(order.lease.rawValue, to: order.writesFrom, received: count)
        script.end(order.lease.rawValue, agreeing ? .finished : .differs(at: order.request.lowerBound))
    }

    /// Three mirrors and the first source, which has brought a mebibyte; each mirror is asked for a part of that.
    private static func sampling() throws -> Script {
        var script = Script.fetching(.exactly(5), length: Self.length) { $0.hosts = ["a", "b", "c", "d"] }
        script.progress(0, to: 1 << 20)
        script.wait(.milliseconds(100))
        // Whoever is free asks for the next comparison.
        for order in script.orders.filter({ !$0.isSample && $0.lease != LeaseID(0) }).prefix(2) {
            script.accept(order.lease.rawValue, Self.resource)
            script.complete(order.lease.rawValue)
        }
        try #require(Self.samples(script).map(\.source) == [SourceID(1), SourceID(2), SourceID(3)])
        return script
    }

    private static func samples(_ script: Script) -> [FetchOrder] { script.orders.filter(\.isSample) }

    /// Has the withdrawals that were ordered done.
    private static func revise(_ script: inout Script) {
        let isOrdered = script.take().contains { if case .revise = $0 { true } else { false } }
        if isOrdered { script.tell(.revised) }
    }

    @Test("Who contradicts while another contradiction is not decided is not judged by it")
    func twoAccusers() throws {
        var script = try Self.sampling()
        let samples = Self.samples(script)
        Self.answer(&script, samples[0], agreeing: false)
        Self.answer(&script, samples[2], agreeing: false)
        // The second mirror is asked who is right, and it is not the first source: both that said so are heard again.
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

    @Test("An arbiter that fails is asked again, and nobody is blamed meanwhile")
    func arbiterFails() throws {
        var script = try Self.sampling()
        let samples = Self.samples(script)
        for sample in samples[1...] { Self.answer(&script, sample, agreeing: true) }
        Self.answer(&script, samples[0], agreeing: false)
        let arbitration = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        script.end(arbitration.lease.rawValue, .failed(Failure(.network, "it broke", isTransient: true)))
        script.wait(.seconds(3))
        // The next connection that is free asks.
        script.complete(0)
        let again = try #require(Self.samples(script).first { $0.spot?.count == 1 })
        #expect(again.source == arbitration.source && again.spot == arbitration.spot)
        Self.answer(&script, again, agreeing: false)
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["a"])
    }

    @Test("Where the arbiter is gone another one is asked")
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

    @Test("A mirror that nobody could be asked about is heard again once the bytes it contradicted are withdrawn")
    func readmitted() throws {
        var script = Script(.exactly(2)) { $0.hosts = ["a", "b", "c"] }
        let earlier = MarkedRanges(mark: 9, ranges: [0..<(Self.length / 2)])
        let saved = SavedPartial(
            resource: Self.resource, completeLength: Self.length, missing: [(Self.length / 2)..<Self.length],
            marked: [earlier])
        script.tell(.surveyed(.partial(saved)))
        let probe = try #require(script.orders.first)
        script.accept(probe.lease.rawValue, Self.resource)
        script.tell(.prepared)
        // The first source is gone before it can say who is right about a byte of an earlier run.
        let doubt = try #require(Self.samples(script).first)
        #expect(doubt.source == SourceID(1))
        script.end(probe.lease.rawValue, .failed(Failure(.server, "gone")))
        Self.answer(&script, doubt, agreeing: false)
        script.wait(.milliseconds(100))
        #expect(script.reports(" has other bytes").map { $0.prefix(1) } == ["b"])
        // The third goes on, and contradicts the earlier run's end.
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
}
