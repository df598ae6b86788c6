import Testing

@testable import SegmentedDownloadCore

/// How long a response head is waited for.
@Suite("Patience for response heads")
struct HeadPatienceTests {
    private static let moment = Duration.nanoseconds(1)

    /// A download whose first request is open.
    private static func probing(_ change: (inout DownloadSettings) -> Void = { _ in }) -> Script {
        var script = Script(.exactly(1)) { settings in
            settings.retries = 0
            change(&settings)
        }
        script.tell(.surveyed(.nothing))
        _ = script.take()
        return script
    }

    /// Whether a lease is revoked right after a time, and not at it.
    private static func isRevoked(_ lease: Int, after time: Duration, in script: inout Script) -> Bool {
        script.wait(time - script.now)
        guard script.take().isEmpty else { return false }
        script.wait(Self.moment)
        return script.take() == [.revoke(LeaseID(lease))]
    }

    @Test("The only request of a file is waited for during 10 minutes")
    func only() {
        var script = Self.probing()
        #expect(Self.isRevoked(0, after: .seconds(600), in: &script))
        script.end(0, .revoked)
        #expect(script.failure?.code == .network)
        #expect(script.failure?.message == "host: no complete response head within 600.0 s")
    }

    @Test("After 30 s without an answer that is reported, once")
    func reported() {
        var script = Self.probing()
        script.wait(.seconds(30))
        #expect(script.reports("not answered").isEmpty)
        for _ in 0..<3 { script.wait(.seconds(1)) }
        #expect(script.reports("not answered") == ["host has not answered yet; segdl waits for up to 600.0 s"])
    }

    @Test("A source is waited for during 30 s while another one has not failed, and the last one during 10 minutes")
    func mirrors() {
        var script = Self.probing {
            $0.hosts = ["one", "two"]
            $0.retries = nil
        }
        #expect(Self.isRevoked(0, after: .seconds(30), in: &script))
        script.end(0, .revoked)
        let asked = script.now
        #expect(script.orders.map(\.source) == [SourceID(1)])
        _ = script.take()
        script.wait(asked + .seconds(600) - script.now)
        #expect(script.take().isEmpty)
        script.wait(Self.moment)
        #expect(script.take() == [.revoke(LeaseID(1))])
    }

    @Test("A given time counts for every request", arguments: [5, 30, 3600])
    func given(seconds: Int) throws {
        let time = Duration.seconds(seconds)
        for hosts in [["one"], ["one", "two"]] {
            var script = Self.probing {
                $0.hosts = hosts
                $0.headTimeout = time
            }
            #expect(Self.isRevoked(0, after: time, in: &script))
        }
        var fetching = try Self.additional { $0.headTimeout = time }
        fetching.bring(LeaseID(0), to: 2000, at: time)
        #expect(fetching.tick(now: .seconds(1) + time).isEmpty)
        #expect(fetching.tick(now: .seconds(1) + time + Self.moment) == [.revoke(LeaseID(1))])
    }

    /// One connection that receives bytes, and another one that was requested a second later.
    private static func additional(_ change: (inout DownloadSettings) -> Void = { _ in }) throws -> Fetching {
        var fetching = Fetching.sample(pieces: 2, connections: 2, change)
        let first = try fetching.asked()
        fetching.accept(first.lease, at: .zero)
        fetching.bring(first.lease, to: 1000, at: .seconds(1))
        _ = try fetching.asked(at: .seconds(1))
        return fetching
    }

    @Test("An additional request is waited for during 30 s")
    func additional() throws {
        var fetching = try Self.additional()
        fetching.bring(LeaseID(0), to: 2000, at: .seconds(31))
        #expect(fetching.tick(now: .seconds(31)).isEmpty)
        #expect(fetching.tick(now: .seconds(31) + Self.moment) == [.revoke(LeaseID(1))])
        #expect(fetching.lease(LeaseID(1))?.headPatience == .seconds(30))
    }

    @Test("If heads of the file take long, an additional request is waited for twice as long, at most 10 minutes")
    func slowHeads() throws {
        for (slowest, patience) in [(10, 30), (45, 90), (400, 600)] as [(Double, Int)] {
            var fetching = try Self.additional()
            fetching.traffic.path.slowestHead = slowest
            fetching.bring(LeaseID(0), to: 2000, at: .seconds(1 + patience))
            #expect(fetching.tick(now: .seconds(1 + patience)).isEmpty)
            #expect(fetching.tick(now: .seconds(1 + patience) + Self.moment) == [.revoke(LeaseID(1))])
        }
    }

    @Test("The only request of a file that has begun is waited for during 10 minutes")
    func onlyOfRest() throws {
        var fetching = Fetching.sample(connections: 1)
        let order = try fetching.asked()
        #expect(fetching.tick(now: .seconds(600)).isEmpty)
        #expect(fetching.tick(now: .seconds(600) + Self.moment) == [.revoke(order.lease)])
    }

    @Test("A request for the same bytes does not make the first one additional")
    func hedged() throws {
        var fetching = Fetching.sample(length: 64 << 20, missing: [(64 << 20) - 100_000..<64 << 20], connections: 2)
        _ = try fetching.asked()
        fetching.traffic.path.requestCost = 0.2
        fetching.traffic.path.ratesBefore = [1e6]
        let hedge = fetching.nextHedge(now: .seconds(5)) { _ in true }
        #expect(hedge != nil)
        #expect(fetching.tick(now: .seconds(600)).isEmpty)
        #expect(fetching.tick(now: .seconds(600) + Self.moment) == [.revoke(LeaseID(0))])
    }

    @Test("The only request is waited for during 30 s while another source has not failed")
    func otherSource() throws {
        for (failures, patience) in [(0, 30), (1, 600)] {
            var fetching = Fetching.sample(hosts: ["one", "two"])
            let order = try fetching.asked()
            for id in fetching.sources.ids where id != order.source { fetching.sources[id].failures = failures }
            #expect(fetching.tick(now: .seconds(patience)).isEmpty)
            #expect(fetching.tick(now: .seconds(patience) + Self.moment) == [.revoke(order.lease)])
        }
    }
}
