import Testing

@testable import SegmentedDownloadCore

/// Which connection is given up, and how many more would be of use.
@Suite("Giving connections up")
struct YieldingTests {
    private static let length: Int64 = 64 << 20
    private static let quarter = length / 4

    /// Four connections, a quarter of the file each, with 1 MiB a second so far.
    private static func running() -> Fetching {
        var fetching = Fetching.sample(length: Self.length, pieces: 4)
        #expect(fetching.openAll().count == 4)
        for lease in 0..<4 {
            fetching.bring(LeaseID(lease), to: Int64(lease) * Self.quarter + (1 << 20), at: .seconds(1))
        }
        return fetching
    }

    private static let all = (0..<4).map { LeaseID($0) }

    @Test("The one with most left goes, if none is nearly done")
    func mostLeft() throws {
        var fetching = Self.running()
        for lease in [0, 1, 3] {
            fetching.bring(LeaseID(lease), to: Int64(lease) * Self.quarter + (2 << 20), at: .seconds(2))
        }
        let (lease, actions) = try fetching.yielded(among: Self.all, now: .seconds(2))
        #expect(lease == LeaseID(2) && actions == [.revoke(LeaseID(2))])
        #expect(fetching.lease(lease)?.revocation == .yielding)
        // It is not given up twice, and no other one is.
        #expect(fetching.yield(among: [lease], now: .seconds(2)) == nil)
        #expect(fetching.yield(among: [], now: .seconds(2)) == nil)
    }

    @Test("One that is done within a quarter of a second is waited for, half a second at the most")
    func nearlyDone() throws {
        var fetching = Self.running()
        // 3 MiB in two seconds: what is left takes less than a quarter of a second, and of the other one more.
        for (lease, left) in [(1, 300_000), (2, 600_000)] as [(Int, Int64)] {
            fetching.bring(LeaseID(lease), to: Int64(lease + 1) * Self.quarter - (3 << 20) - left, at: .seconds(2))
            fetching.bring(LeaseID(lease), to: Int64(lease + 1) * Self.quarter - left, at: .seconds(4))
        }
        let (lease, actions) = try fetching.yielded(among: Self.all, now: .seconds(4))
        #expect(lease == LeaseID(1) && actions.isEmpty)
        #expect(fetching.surplus == -1)
        #expect(fetching.endPatience(now: .seconds(4) + Fetching.yieldTimeout - .nanoseconds(1)).isEmpty)
        #expect(fetching.endPatience(now: .seconds(4) + Fetching.yieldTimeout) == [.revoke(LeaseID(1))])
        #expect(fetching.endPatience(now: .seconds(9)).isEmpty)
    }

    @Test("Of those that are not nearly done the last that has no answer yet goes first")
    func asked() throws {
        var fetching = Fetching.sample(length: Self.length, pieces: 4)
        for lease in 0..<4 {
            _ = fetching.ask()
            if lease == 0 || lease == 3 { fetching.accept(LeaseID(lease), at: .zero) }
        }
        #expect(try fetching.yielded(among: Self.all, now: .zero).lease == LeaseID(2))
        #expect(try fetching.yielded(among: Self.all, now: .zero).lease == LeaseID(1))
    }

    @Test("One stream is never given up, and nothing is once the outcome is known")
    func singleStream() {
        var stream = Self.running()
        stream.mode = .stream
        #expect(stream.yield(among: Self.all, now: .seconds(1)) == nil)
        var over = Self.running()
        over.outcome = .complete
        #expect(over.yield(among: Self.all, now: .seconds(1)) == nil && over.surplus == 0)
    }

    @Test("A surplus is what is open beyond the target, without what is being given up")
    func surplus() {
        var fetching = Self.running()
        #expect(fetching.surplus == 0)
        fetching.traffic.controller.update(.exactly(1))
        #expect(fetching.surplus == 3)
        _ = fetching.yield(among: Self.all, now: .seconds(1))
        #expect(fetching.surplus == 2)
    }

    @Test(
        "Waiting segments make connections usable, up to the maximum, and so does a lease that would be cut"
    )
    func additionalConnectionsUsable() throws {
        var script = Script.fetching(.exactly(8), length: Self.length) { _ in }
        let machine = { (script: Script) in try #require(script.machine.machine(Script.id)) }
        #expect(try machine(script).additionalConnectionsUsable(max: 8, now: script.now) == 0)
        for lease in script.leases where lease > 3 {
            script.end(lease, .failed(DownloadError(.network, "", isTransient: true)))
        }
        var limits = GroupStateMachine.Limits()
        limits.connections = 3
        script = Script.fetching(.exactly(8), length: Self.length, limits: limits)
        #expect(script.leases.count == 3)
        #expect(try machine(script).additionalConnectionsUsable(max: 8, now: script.now) == 5)
        #expect(try machine(script).additionalConnectionsUsable(max: 2, now: script.now) == 2)
    }

    @Test("A slow connection that would be replaced makes no additional one usable")
    func replacing() throws {
        let rest: Int64 = 20_000
        var fetching = Fetching.sample(
            length: Self.length, missing: [Self.length - 2 * rest..<Self.length], connections: 2)
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .zero)
        fetching.bring(order.lease, to: Self.length - rest, at: .seconds(2))
        // A hundred times as fast: what is left is too little to be cut, and worth another request.
        fetching.traffic.path.ratesBefore = [1e6]
        var machine = DownloadStateMachine(settings: fetching.settings, seed: 1)
        machine.state = .fetching(fetching)
        #expect(machine.additionalConnectionsUsable(max: 8, now: .seconds(2)) == 0)
        let actions = machine.steal(now: .seconds(2))
        #expect(actions == [.revoke(order.lease)])
    }
}
