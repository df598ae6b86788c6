import SegmentedDownloadCore
import Testing

@Suite("Requesting late bytes again")
struct HedgingTests {
    private static let resource = RemoteResource.tagged("\"a\"", length: 64 << 20)
    private static let end: Int64 = 32 << 20
    /// The bytes that the late connection has left: too few to split.
    private static let rest: Int64 = 100_000

    /// Two connections with a second's work each: the second has completed, and the first stalls with little left.
    private static func late(rest: Int64 = Self.rest) -> Script {
        var script = Script.fetching(.exactly(2), length: 64 << 20)
        script.accept(1, Self.resource)
        for step in 1...8 {
            script.wait(.milliseconds(125))
            script.progress(0, to: (Self.end - rest) / 8 * Int64(step))
            script.progress(1, to: Self.end + Self.end / 8 * Int64(step))
        }
        script.progress(0, to: Self.end - rest)
        script.complete(1)
        return script
    }

    /// The order that requests the first connection's bytes again.
    private static func hedge(_ script: inout Script) -> FetchOrder? {
        for _ in 0..<10 {
            script.wait(.milliseconds(100))
            if let order = script.orders.first(where: { $0.hedged != nil }) { return order }
        }
        return nil
    }

    @Test("A free connection requests a stalled connection's rest, and takes it over when its response comes")
    func outrun() throws {
        var script = Self.late()
        let order = try #require(Self.hedge(&script))
        #expect(order.request.lowerBound == Self.end - Self.rest && order.request.upperBound == Self.end)
        #expect(script.plan?.segments.count == 2, "its segment is unchanged so far")
        _ = script.take()
        script.accept(order.lease.rawValue, Self.resource)
        #expect(
            script.take() == [
                .narrow(LeaseID(0), to: Self.end - Self.rest), .revoke(LeaseID(0)),
                .answer(order.lease, .proceed(limit: Self.end, from: Self.end - Self.rest)),
            ])
        script.end(0, .revoked)
        script.complete(order.lease.rawValue)
        #expect(script.take().last?.isPlace == true)
    }

    @Test("Bytes that the late connection received meanwhile are skipped")
    func meanwhile() throws {
        var script = Self.late()
        let order = try #require(Self.hedge(&script))
        script.progress(0, to: Self.end - Self.rest + 10_000)
        script.wait(.milliseconds(300))
        _ = script.take()
        script.accept(order.lease.rawValue, Self.resource)
        let from = Self.end - Self.rest + 10_000
        #expect(script.take().last == .answer(order.lease, .proceed(limit: Self.end, from: from)))
        #expect(script.plan?.segments.map(\.lowerBound) == [0, from, Self.end])
    }

    @Test("The connection that completes first wins, and the other is stopped")
    func won() throws {
        var script = Self.late()
        let order = try #require(Self.hedge(&script))
        _ = script.take()
        script.complete(0)
        script.wait(.milliseconds(100))
        #expect(script.take().contains(.revoke(order.lease)), "all bytes are written")
        script.tell(.checkpointed(bytes: 64 << 20))
        _ = script.take()
        script.accept(order.lease.rawValue, Self.resource)
        #expect(script.take() == [.answer(order.lease, .stop)])
        script.end(order.lease.rawValue, .finished)
        try script.confirm(Self.resource)
        #expect(script.take().last?.isPlace == true)
    }

    @Test("A late connection that receives bytes again and is nearly done keeps its segment")
    func revived() throws {
        var script = Self.late()
        let order = try #require(Self.hedge(&script))
        script.progress(0, to: Self.end - 1000)
        _ = script.take()
        script.accept(order.lease.rawValue, Self.resource)
        #expect(script.take() == [.answer(order.lease, .stop)])
    }

    @Test("At most a fiftieth of the file is requested twice")
    func bounded() {
        // More could not be split anyway if the smallest pieces were half a fiftieth.
        var script = Script.fetching(.exactly(2), length: 64 << 20) {
            $0.splitLengthMinimum = 4 << 20
            $0.stealLengthMinimum = 4 << 20
        }
        script.accept(1, Self.resource)
        for step in 1...8 {
            script.wait(.milliseconds(125))
            script.progress(0, to: (Self.end - (2 << 20)) / 8 * Int64(step))
            script.progress(1, to: Self.end + Self.end / 8 * Int64(step))
        }
        script.complete(1)
        #expect(Self.hedge(&script) == nil, "2 MiB of 64 exceed it")
    }

    @Test(
        "A useless answer, or a connection that breaks, leaves the late connection's segment unchanged",
        arguments: [true, false])
    func unanswered(isRefused: Bool) throws {
        var script = Self.late()
        let order = try #require(Self.hedge(&script))
        let lease = order.lease.rawValue
        _ = script.take()
        if isRefused {
            script.respond(lease, .refused(status: 503, retryAfter: nil))
            #expect(script.take() == [.answer(order.lease, .stop)])
            script.end(lease, .finished)
        } else {
            script.end(lease, .failed(DownloadError(.network, "reset", isTransient: true)))
        }
        #expect(script.conclusion == nil && script.leases == [0])
        script.wait(.milliseconds(500))
        #expect(script.leases == [0], "it is not requested again at once")
        script.complete(0)
        try script.confirm(Self.resource)
        #expect(script.take().last?.isPlace == true)
    }

    @Test("A connection without a response gives up its whole segment")
    func undelivered() throws {
        var limits = GroupStateMachine.Limits()
        limits.connections = 64
        limits.connectionsPerHost = 64
        var script = Script.fetching(.exactly(64), length: 64 << 20, limits: limits)
        for lease in 1..<63 { script.accept(lease, Self.resource) }
        for step in 1...4 {
            script.wait(.milliseconds(63))
            for order in script.orders where order.lease != LeaseID(63) {
                script.progress(order.lease.rawValue, to: order.writesFrom + (Int64(step) << 18))
            }
        }
        for lease in 0..<63 { script.complete(lease) }
        let undelivered = try #require(script.order(63)?.writesFrom)
        let order = try #require(Self.hedge(&script))
        #expect(order.request.lowerBound == undelivered && order.request.upperBound == undelivered + (1 << 20))
        _ = script.take()
        script.accept(order.lease.rawValue, Self.resource)
        #expect(
            script.take() == [
                .narrow(LeaseID(63), to: undelivered), .revoke(LeaseID(63)),
                .answer(order.lease, .proceed(limit: undelivered + (1 << 20), from: undelivered)),
            ])
        script.complete(order.lease.rawValue)
        script.end(63, .revoked)
        #expect(script.take().last?.isPlace == true)
    }
}
