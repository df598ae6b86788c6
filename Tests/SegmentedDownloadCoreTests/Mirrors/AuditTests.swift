import Testing

@testable import SegmentedDownloadCore

@Suite("Comparisons with the reference")
struct AuditTests {
    private static let (first, second) = (SourceTable.Contributor.source(.first), SourceTable.Contributor.earlier(0))

    private static var two: Audits {
        var audits = Audits()
        audits.add([Audit(spot: 0..<100, contributor: Self.first), Audit(spot: 200..<300, contributor: Self.second)])
        return audits
    }

    /// A request for bytes from 0 to 100 that received some, from an answer that ends at an offset.
    private static func answered(_ id: Int, received: Int64, responseEnd: Int64) -> Lease {
        let order = FetchOrder(
            lease: LeaseID(id), segment: .none, request: RangeRequest(lowerBound: 0, upperBound: 100), writesFrom: 100,
            limit: 100)
        var lease = Lease(order: order, now: .zero)
        lease.bytesReceived = received
        lease.responseEnd = responseEnd
        return lease
    }

    @Test("Each is requested once, and again if it was not answered")
    func asking() {
        var audits = Self.two
        #expect(audits.next?.spot == 0..<100)
        audits.ask(LeaseID(1))
        #expect(audits.next?.spot == 200..<300 && audits.contains(LeaseID(1)) && !audits.contains(LeaseID(2)))
        audits.ask(LeaseID(2))
        #expect(audits.next == nil)
        audits.release(LeaseID(1))
        #expect(audits.next?.spot == 0..<100 && !audits.contains(LeaseID(1)) && audits.contains(LeaseID(2)))
    }

    @Test("An answered one is done; what an agreeing answer left out is compared separately")
    func finishing() {
        for (received, responseEnd, agrees, rest) in [
            (100, 100, true, nil), (60, 60, true, 60..<100), (60, 60, false, nil), (60, 100, true, nil),
            (100, 60, true, nil),
        ] as [(Int64, Int64, Bool, Range<Int64>?)] {
            var audits = Self.two
            audits.ask(LeaseID(1))
            audits.finish(Self.answered(1, received: received, responseEnd: responseEnd), agrees: agrees)
            #expect(audits.open.map(\.spot) == (rest.map { [$0] } ?? []) + [200..<300])
            #expect(rest == nil || audits.next?.contributor == Self.first)
        }
        var other = Self.two
        other.finish(Self.answered(9, received: 100, responseEnd: 100), agrees: true)
        #expect(other == Self.two)
    }

    @Test("Those at the end are chosen once, until bytes are missing again or the reference is another one")
    func choosing() {
        var audits = Self.two
        #expect(!audits.areChosen)
        audits.choose([Audit(spot: 5..<6, contributor: Self.first)])
        #expect(audits.areChosen && audits.open.count == 3)
        audits.removeAll()
        #expect(audits.areChosen && audits.isEmpty)
        audits.reopen()
        #expect(!audits.areChosen)
        audits.choose([Audit(spot: 5..<6, contributor: Self.first)])
        audits.restart()
        #expect(!audits.areChosen && audits.isEmpty)
    }

    @Test("Those of withdrawn bytes are dropped")
    func removing() {
        var audits = Self.two
        audits.add([Audit(spot: 400..<500, contributor: Self.first)])
        #expect(audits.contributors == [Self.first, Self.second])
        audits.remove(of: Self.first)
        #expect(audits.open.map(\.spot) == [200..<300] && audits.contributors == [Self.second])
    }

    @Test("Both ends of every run are compared, however many there are, and random places of long runs")
    func groups() {
        let runs = (0..<1000).map { Int64(10 * $0)..<Int64(10 * $0 + 5) }
        var generator = SplitMix64(seed: 1)
        let short = Audits.comparing([(Self.first, runs), (Self.second, [5..<10])], using: &generator)
        #expect(short.filter { $0.contributor == Self.first }.map(\.spot) == runs)
        #expect(short.filter { $0.contributor == Self.second }.map(\.spot) == [5..<10])
        let long: [Range<Int64>] = [0..<2 << 20]
        let audits = Audits.comparing([(Self.second, long), (Self.first, [5..<7])], using: &generator)
        #expect(audits.map(\.contributor) == Array(repeating: Self.second, count: 4) + [Self.first])
        #expect(audits.prefix(2).map(\.spot) == SampleSpots.ends(of: long[0]) && audits.last?.spot == 5..<7)
    }
}
