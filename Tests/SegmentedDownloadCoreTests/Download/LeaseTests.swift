import Testing

@testable import SegmentedDownloadCore

@Suite("Leases")
struct LeaseTests {
    @Test("Rate, stall and slowness of a connection are measured from the beginning of its body")
    func beginBody() {
        var lease = Lease.sample(0, rate: 1000, now: .seconds(1))
        lease.phase = .requested
        lease.position = 500
        lease.bytesReceived = 700
        lease.beginBody(now: .seconds(10))
        #expect(lease.phase == .receiving && lease.progressAt == .seconds(10) && lease.meter.rate == nil)
        lease.meter.record(1500, at: .seconds(11))
        #expect(lease.meter.rate == 1000)
        // 300 bytes within a second are enough for 300 bytes per second, and too few for 301.
        for (minimum, isTooSlow) in [(300, false), (301, true)] as [(Int64, Bool)] {
            var window = lease.speedWindow
            #expect(window.isTooSlow(bytes: 1000, minimum: minimum, time: .seconds(1), now: .seconds(11)) == isTooSlow)
        }
    }
}
