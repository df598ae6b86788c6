import CAllocations

/// A small operation that runs very often.
struct Operation {
    let name: String
    /// Allocations allowed per call, on average.
    let allocationsMax: Double
    /// Runs the operation this number of times.
    let body: (Int) throws -> Void

    struct Figures {
        var nanoseconds: Double
        var allocations: Double
    }

    /// The number of measured batches; the median counts.
    private static let batches = 5

    func measure(seconds: Double) throws -> Figures {
        let clock = ContinuousClock()
        var count = 1
        // Warms up, so that one-time allocations do not count, and finds the length of a batch.
        while try clock.measure({ try self.body(count) }) < .seconds(seconds / Double(Self.batches)) { count *= 2 }
        var times: [Double] = []
        let before = segdl_allocation_count()
        for _ in 0..<Self.batches {
            let time = try clock.measure { try self.body(count) }
            times.append(time / .nanoseconds(1) / Double(count))
        }
        let allocations = Double(segdl_allocation_count() - before) / Double(Self.batches * count)
        return Figures(nanoseconds: times.sorted()[Self.batches / 2], allocations: allocations)
    }
}
