import SegmentedDownloadCore
import Testing

@Suite("Throughput meter")
struct ThroughputMeterTests {
    @Test("Too short a span has no rate")
    func tooShort() {
        var meter = ThroughputMeter(start: .zero)
        #expect(meter.rate == nil)
        meter.record(1000, at: .milliseconds(249))
        #expect(meter.rate == nil)
        meter.record(1000, at: .milliseconds(250))
        #expect(meter.rate == 4000)
    }

    @Test("A steady stream has a steady rate, however often it is read", arguments: [1, 10, 100, 300])
    func steady(step: Int) {
        var meter = ThroughputMeter(start: .seconds(5), count: 77)
        for time in stride(from: step, through: 10_000, by: step) {
            meter.record(77 + Int64(time) * 1000, at: .seconds(5) + .milliseconds(time))
        }
        #expect(abs((meter.rate ?? 0) - 1e6) < 1)
    }

    @Test("A change of the rate shows in full after the window", arguments: [1, 10, 100])
    func follows(step: Int) {
        var meter = ThroughputMeter(start: .zero)
        var count: Int64 = 0
        for time in stride(from: step, through: 10_000, by: step) {
            count += Int64(time <= 5000 ? 1000 * step : 10 * step)
            meter.record(count, at: .milliseconds(time))
        }
        #expect(abs((meter.rate ?? 0) - 10_000) < 500)
    }

    @Test("A stopped stream's rate falls to nothing")
    func stops() {
        var meter = ThroughputMeter(start: .zero)
        meter.record(1_000_000, at: .seconds(1))
        for tick in 11...60 { meter.record(1_000_000, at: .milliseconds(100 * tick)) }
        #expect(meter.rate == 0)
    }

    @Test("A count or a time that goes back is ignored")
    func neverBack() {
        var meter = ThroughputMeter(start: .zero, count: 100)
        meter.record(50, at: .seconds(1))
        #expect(meter.rate == 0)
        meter.record(1000, at: .milliseconds(500))
        meter.record(1000, at: .seconds(1))
        #expect(meter.rate == 0)
    }

    @Test("Counts between two samples are interpolated, and there are none before the first and after the last")
    func interpolates() {
        var meter = ThroughputMeter(start: .seconds(1), count: 100)
        meter.record(1100, at: .seconds(2))
        meter.record(5100, at: .seconds(3))
        for (time, count) in [
            (0.5, nil), (1, 100), (1.5, 600), (2, 1100), (2.5, 3100), (3, 5100), (3.5, nil),
        ] as [(Double, Double?)] {
            #expect(meter.count(at: .seconds(time)) == count, "at \(time) s")
        }
    }
}
