import SegmentedDownloadCore
import Testing

@Suite("Fetching segments")
struct FetchingTests {
    // MARK: Connections

    @Test("-s N opens exactly N connections, for N equal segments", arguments: [1, 2, 3, 4, 8, 16])
    func opensExactly(count: Int) {
        let script = Script.fetching(count)
        #expect(script.leases == Array(0..<count))
        #expect(script.plan?.segments.count == count)
    }

    @Test("A file too short for N pieces gets as many connections as it has pieces")
    func opensFewer() {
        #expect(Script.fetching(16, length: 3 << 20).leases == [0, 1, 2])
    }

    @Test("The probe continues as the first segment, up to the start of the second")
    func probeGoesOn() {
        var script = Script.fetching(4)
        #expect(script.take().last == .answer(LeaseID(0), .proceed(limit: 16 << 20)))
    }

    @Test(
        "An automatic download opens more connections while each is as fast as the first, and stops at the path's limit"
    )
    func doublesWhilePaying() {
        var script = Script.fetching(.automatic, length: 1 << 30)
        let resource = RemoteResource.tagged("\"a\"", length: 1 << 30)
        var positions: [Int: Int64] = [:]
        var most = 0
        // 10 MB/s for each connection, and at most 40 MB/s in all.
        for _ in 0..<80 {
            for lease in script.leases where positions[lease] == nil {
                script.accept(lease, resource)
                positions[lease] = script.order(lease)?.writesFrom
            }
            script.wait(.milliseconds(100))
            let each = min(1_000_000, 4_000_000 / Int64(script.leases.count))
            for lease in script.leases {
                guard let position = positions[lease] else { continue }
                positions[lease] = position + each
                script.progress(lease, to: position + each)
            }
            most = max(most, script.leases.count)
        }
        #expect(most == 12, "four have four times the rate of one, twelve no more than four")
    }

    // MARK: Splitting

    @Test("A free connection takes the back half of the segment with most left")
    func splitsAtTheEnd() {
        var script = Script.receiving(2)
        script.wait(.seconds(1))
        script.progress(0, to: 8 << 20)
        script.progress(1, to: 64 << 20)
        script.end(1, .finished)
        #expect(script.leases == [0, 2])
        let order = script.order(2)
        #expect(order?.request.upperBound == 32 << 20)
        #expect(order?.writesFrom == 20 << 20, "the middle of what the first has left")
    }

    @Test("A victim that is already past the cut keeps the bytes it has written")
    func splitsBehindThePosition() {
        var script = Script.receiving(2)
        script.wait(.seconds(1))
        script.progress(0, to: 8 << 20)
        script.progress(1, to: 64 << 20)
        script.end(1, .finished)
        script.accept(2, Script.resource)
        script.progress(0, to: 20 << 20)
        script.end(0, .finished)
        for _ in 0..<20 {
            for lease in script.leases {
                script.accept(lease, Script.resource)
                script.complete(lease)
            }
        }
        #expect(script.take().contains { $0.isPlace })
    }

    @Test("A response continues into an unleased segment, which saves a request")
    func absorbs() {
        var script = Script.fetching(2)
        script.respond(1, Script.refused)
        script.end(1, .finished)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take() == [.answer(LeaseID(0), .proceed(limit: 64 << 20))])
    }

    @Test("A response goes on into the segment of a request without an answer, until the source has answered one more")
    func overtakes() {
        var script = Script.fetching(3, length: 96 << 20)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take() == [.revoke(LeaseID(2)), .answer(LeaseID(0), .proceed(limit: 64 << 20))])
        // Its answer is too late, and its failure is none of the file's.
        script.accept(2, .tagged("\"a\"", length: 96 << 20))
        #expect(script.take() == [.answer(LeaseID(2), .stop)])
        script.end(2, .revoked)
        script.progress(0, to: 64 << 20)
        script.accept(1, .tagged("\"a\"", length: 96 << 20))
        _ = script.take()
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take().first == .answer(LeaseID(0), .stop))
    }

    @Test("A segment that was begun is left to its request, which no other one joins")
    func doesNotOvertakeWhatWasBegun() {
        var script = Script.fetching(2)
        script.accept(1, Script.resource)
        script.progress(1, to: 40 << 20)
        script.end(1, .failed(DownloadError(.network, "reset", isTransient: true)))
        let again = script.leases.last ?? 0
        script.respond(again, Script.refused)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take().first == .answer(LeaseID(0), .stop))
    }

    @Test("After a further request was answered with bytes, one that has no answer yet keeps its segment")
    func doesNotOvertakeWhatIsServed() {
        var script = Script.fetching(3, length: 96 << 20)
        script.accept(1, .tagged("\"a\"", length: 96 << 20))
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take().first == .answer(LeaseID(0), .stop))
    }

    @Test("A response goes on into the segment of a request to an origin that has refused one since it answered one")
    func overtakesDoubtful() {
        var script = Script.fetching(4, length: 128 << 20)
        let others = script.orders.filter { $0.writesFrom > 32 << 20 }.map(\.lease.rawValue)
        script.accept(others[0], .tagged("\"a\"", length: 128 << 20))
        script.respond(others[1], Script.refused)
        script.end(others[1], .stopped)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take().contains(.answer(LeaseID(0), .proceed(limit: 64 << 20))))
    }

    @Test("A response that reaches a leased segment is stopped")
    func doesNotAbsorbWhatIsTaken() {
        var script = Script.receiving(2)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take().first == .answer(LeaseID(0), .stop))
    }
}
