import Testing

@testable import segdl

/// Figures that can be read while bytes arrive in bursts.
@Suite("Steady figures")
struct SteadyFiguresTests {
    /// The distinct rates shown while `bytes` has arrived at each tenth of a second.
    static func rates(tenths: Int, _ bytes: (Int) -> Int64) -> [Double] {
        var figures = SteadyFigures()
        var rates: [Double] = []
        for tenth in 0...tenths {
            figures.record(bytes: bytes(tenth), connections: 1, at: .milliseconds(100 * tenth))
            if let rate = figures.rate, rate != rates.last { rates.append(rate) }
        }
        return rates
    }

    @Test("A constant rate is shown after half a second, and bytes kept from before do not count")
    func constant() {
        var figures = SteadyFigures()
        for tenth in 0..<5 {
            figures.record(bytes: 1 << 40 + Int64(tenth) * 1000, connections: 1, at: .milliseconds(100 * tenth))
            #expect(figures.rate == nil)
        }
        figures.record(bytes: 1 << 40 + 5000, connections: 1, at: .milliseconds(500))
        #expect(abs((figures.rate ?? 0) - 10_000) < 1)
    }

    @Test("Bursts change the rate by little, and at most once a second")
    func bursts() {
        // All bytes of a second arrive in its last tenth.
        let rates = Self.rates(tenths: 300) { Int64(($0 + 1) / 10) * 1_000_000 }
        #expect(rates.count <= 31)
        #expect(rates.suffix(10).allSatisfy { abs($0 - 1_000_000) < 200_000 }, "\(rates)")
    }

    @Test("A lasting change is followed within some seconds")
    func change() {
        let rates = Self.rates(tenths: 350) { $0 <= 200 ? Int64($0) * 100_000 : 20_000_000 }
        #expect((rates.last ?? .infinity) < 100_000, "\(rates)")
    }

    @Test("A connection that is replaced does not change the number")
    func connections() {
        var figures = SteadyFigures()
        var shown: Set<Int> = []
        for tenth in 0..<100 {
            figures.record(bytes: 0, connections: tenth % 7 == 3 ? 3 : 4, at: .milliseconds(100 * tenth))
            shown.insert(figures.connections)
        }
        #expect(shown == [4])
        for tenth in 100..<125 { figures.record(bytes: 0, connections: 2, at: .milliseconds(100 * tenth)) }
        #expect(figures.connections == 2)
    }

    @Test("Fewer bytes than before begin a new measurement")
    func restart() {
        var figures = SteadyFigures()
        for second in 0..<5 { figures.record(bytes: Int64(second) << 30, connections: 1, at: .seconds(second)) }
        figures.record(bytes: 0, connections: 1, at: .seconds(5))
        #expect(figures.rate == nil)
        figures.record(bytes: 1000, connections: 1, at: .seconds(6))
        #expect(figures.rate.map { abs($0 - 1000) < 1 } == true)
    }
}
