import Testing

@testable import SegmentedDownloadCore

@Suite("A least speed")
struct SpeedLimitTests {
    private static let time = Duration.seconds(10)

    /// Two connections that each receive the given bytes in each second, for some seconds.
    private static func after(
        _ seconds: Int, _ rates: [Int64], isHeld: Bool = false, minimum: Int64? = 1000
    ) throws -> (fetching: Fetching, revoked: [LeaseID]) {
        var fetching = Fetching.sample(pieces: 2, connections: 2) {
            $0.speedMinimum = minimum
            $0.speedTime = Self.time
            $0.stallTimeout = .seconds(1000)
        }
        let leases = fetching.openAll()
        try #require(leases.count == rates.count)
        var revoked: [LeaseID] = []
        for second in 1...seconds {
            let now = Duration.seconds(second)
            let observations = try zip(leases, rates).map { id, rate in
                let lease = try #require(fetching.lease(id))
                let bytes = rate * Int64(second)
                return LeaseObservation(
                    lease: id, position: lease.writesFrom + bytes, bytesReceived: bytes, isWriting: false,
                    isHeld: isHeld)
            }
            fetching.observe(observations, now: now)
            for case .revoke(let id) in fetching.tick(now: now) { revoked.append(id) }
        }
        return (fetching, revoked)
    }

    @Test("A download that is too slow for the whole time fails, and no sooner")
    func failing() throws {
        #expect(try Self.after(9, [499, 500]).fetching.outcome == nil)
        let (fetching, _) = try Self.after(10, [499, 500])
        guard case .failed(let failure) = fetching.outcome else {
            Issue.record("\(String(describing: fetching.outcome))")
            return
        }
        #expect(failure.code == .network && failure.message.contains("fewer than 1000 bytes per second"))
    }

    @Test("One that is fast enough does not, nor one without a limit")
    func fastEnough() throws {
        let enough = try Self.after(100, [1000, 1000])
        #expect(enough.fetching.outcome == nil && enough.revoked.isEmpty)
        let unlimited = try Self.after(100, [1, 1], minimum: nil)
        #expect(unlimited.fetching.outcome == nil)
    }

    @Test("A slow connection is replaced once, while the other is fast enough for both")
    func replacing() throws {
        let (fetching, revoked) = try Self.after(12, [5000, 900])
        #expect(fetching.outcome == nil && revoked == [LeaseID(1)])
    }

    @Test("Time spent waiting for a rate limit does not count")
    func held() throws {
        let (fetching, revoked) = try Self.after(100, [1, 1], isHeld: true)
        #expect(fetching.outcome == nil && revoked.isEmpty)
    }

    @Test("Bytes that arrive at once count for the whole time after them, and no longer")
    func bursts() {
        var window = SpeedWindow(at: .zero, bytes: 0)
        let isTooSlow = { (window: inout SpeedWindow, bytes: Int64, second: Int) in
            window.isTooSlow(bytes: bytes, minimum: 1000, time: Self.time, now: .seconds(second))
        }
        #expect(!isTooSlow(&window, 10_000, 3))
        for second in 4...12 { #expect(!isTooSlow(&window, 10_000, second)) }
        #expect(isTooSlow(&window, 10_000, 13))
    }

    @Test("Time in which the machine was suspended does not count")
    func suspended() {
        var window = SpeedWindow(at: .zero, bytes: 0)
        for second in [1, 100] + Array(101..<110) {
            let isTooSlow = window.isTooSlow(bytes: 0, minimum: 1000, time: Self.time, now: .seconds(second))
            #expect(!isTooSlow)
        }
        let isTooSlow = window.isTooSlow(bytes: 0, minimum: 1000, time: Self.time, now: .seconds(110))
        #expect(isTooSlow)
    }

    @Test("The time begins with the response's body, not with the request")
    func lateHead() throws {
        var fetching = Fetching.sample(connections: 1) {
            $0.speedMinimum = 1000
            $0.speedTime = Self.time
        }
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .seconds(9))
        fetching.traffic.restartSpeed(now: .seconds(9))
        for second in 10...18 {
            fetching.bring(order.lease, to: Int64(second), at: .seconds(second))
            #expect(fetching.tick(now: .seconds(second)).isEmpty, "after \(second) s")
        }
    }
}
