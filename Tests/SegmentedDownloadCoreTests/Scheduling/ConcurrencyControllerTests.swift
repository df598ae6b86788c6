import SegmentedDownloadCore
import Testing

@Suite("Concurrency controller")
struct ConcurrencyControllerTests {
    /// The number of connections settled on where `rate` says how many bytes a second so many connections bring.
    private static func settled(_ rate: (Int) -> Double) -> Int {
        var controller = ConcurrencyController(.automatic)
        var bytes: Int64 = 0
        for tick in 0..<600 {
            bytes += Int64(rate(controller.target) / 10)
            controller.observe(bytes: bytes, receiving: controller.target, now: .milliseconds(100 * tick))
        }
        return controller.target
    }

    @Test("A number given is exact, whatever comes of it")
    func exact() {
        var controller = ConcurrencyController(.exactly(5))
        for tick in 0..<100 { controller.observe(bytes: 0, receiving: 5, now: .seconds(tick)) }
        #expect(controller.target == 5)
    }

    @Test("Connections double while doubling pays, up to the most that annoys nobody")
    func doubles() {
        #expect(Self.settled { Double($0) * 1e6 } == 16)
    }

    @Test("A path one connection fills is given one more and no further")
    func saturated() {
        #expect(Self.settled { _ in 1e7 } == 2)
    }

    @Test("A gain below 15 % is the last step")
    func gain() {
        #expect(Self.settled { $0 == 1 ? 1e6 : $0 == 2 ? 1.14e6 : 1e9 } == 2)
        #expect(Self.settled { $0 == 1 ? 1e6 : $0 == 2 ? 1.2e6 : 1.2e6 } == 4)
    }

    @Test("A number is judged only while so many connections receive")
    func waitsForAll() {
        var controller = ConcurrencyController(.automatic)
        for tick in 0..<100 {
            controller.observe(
                bytes: Int64(tick) * 1000, receiving: min(1, controller.target), now: .milliseconds(100 * tick))
        }
        #expect(controller.target == 2, "the second connection never came")
    }
}
