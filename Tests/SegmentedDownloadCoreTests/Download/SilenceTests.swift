import SegmentedDownloadCore
import Testing

@Suite("Connections on which nothing comes")
struct SilenceTests {
    private static let resource = RemoteResource.tagged("\"a\"", length: 64 << 20)

    /// Four connections, one of which gets no answer.
    private static func script() -> Script {
        var script = Script.fetching(.exactly(4), length: 64 << 20)
        script.accept(1, Self.resource)
        script.accept(2, Self.resource)
        _ = script.take()
        return script
    }

    /// Waits, while the others bring bytes, until something is revoked; returns that and the tenths of a second it took.
    private static func revoked(_ script: inout Script, within tenths: Int, _ bytes: inout Int64) -> (LeaseID, Int)? {
        for tenth in 1...tenths {
            bytes += 1000
            for (lease, start) in [(0, 0), (1, 16 << 20), (2, 32 << 20)] as [(Int, Int64)] {
                script.progress(lease, to: start + bytes)
            }
            script.wait(.milliseconds(100))
            for case .revoke(let lease) in script.take() { return (lease, tenth) }
        }
        return nil
    }

    @Test("One is replaced once others that were asked no earlier have long had their answers")
    func compared() throws {
        var (script, bytes) = (Self.script(), Int64(0))
        let segment = try #require(script.order(3)?.segment)
        let (lease, tenths) = try #require(Self.revoked(&script, within: 100, &bytes))
        #expect(lease == LeaseID(3) && tenths == 11)
        script.end(3, .revoked)
        let next = try #require(script.orders.last { $0.segment == segment }?.lease, "it is asked for again")
        #expect(Self.revoked(&script, within: 100, &bytes) == nil, "nobody that was asked later has had an answer")
        // One that was has.
        script.end(2, .failed(Failure(.network, "reset", isTransient: true)))
        script.wait(.seconds(5))
        let other = try #require(script.leases.last)
        _ = script.take()
        script.accept(other, Self.resource)
        script.wait(.milliseconds(100))
        #expect(script.take().contains(.revoke(next)))
    }

    @Test("Where nobody that was asked as late has had an answer, all are waited for")
    func alone() throws {
        var script = Script.fetching(.exactly(2), length: 64 << 20)
        _ = script.take()
        script.wait(.seconds(5))
        script.progress(0, to: 1 << 20)
        script.wait(.seconds(5))
        #expect(script.take().allSatisfy { !$0.isRevoke })
    }
}
