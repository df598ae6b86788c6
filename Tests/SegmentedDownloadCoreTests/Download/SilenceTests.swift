import SegmentedDownloadCore
import Testing

@Suite("Connections without a response")
struct SilenceTests {
    private static let resource = RemoteResource.tagged("\"a\"", length: 64 << 20)

    /// Four connections, one of which gets no response.
    private static func script() -> Script {
        var script = Script.fetching(.exactly(4), length: 64 << 20)
        script.accept(1, Self.resource)
        script.accept(2, Self.resource)
        _ = script.take()
        return script
    }

    /// Waits, while the others receive bytes, until a lease is revoked; returns the lease and the tenths of a second it
    /// took.
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

    @Test("A connection is replaced after others that asked no earlier have long had their responses")
    func compared() throws {
        var (script, bytes) = (Self.script(), Int64(0))
        let segment = try #require(script.order(3)?.segment)
        let (lease, tenths) = try #require(Self.revoked(&script, within: 100, &bytes))
        #expect(lease == LeaseID(3) && tenths == 11)
        script.end(3, .revoked)
        let next = try #require(script.orders.last { $0.segment == segment }?.lease, "it is requested again")
        #expect(Self.revoked(&script, within: 100, &bytes) == nil, "no request made later has had a response")
        // One of them gets a response.
        script.end(2, .failed(DownloadError(.network, "reset", isTransient: true)))
        script.wait(.seconds(5))
        let other = try #require(script.leases.last)
        _ = script.take()
        script.accept(other, Self.resource)
        script.wait(.milliseconds(100))
        #expect(script.take().contains(.revoke(next)))
    }

    @Test("If no request made as late has had a response, all are waited for")
    func alone() throws {
        var script = Script.fetching(.exactly(2), length: 64 << 20)
        _ = script.take()
        script.wait(.seconds(5))
        script.progress(0, to: 1 << 20)
        script.wait(.seconds(5))
        #expect(script.take().allSatisfy { !$0.isRevoke })
    }
}
