import CAllocations

/// Something small that is done very often.
struct Operation {
    let name: String
    /// How often memory may be allocated each time, on average.
    let allocationsMax: Double
    /// Does it so many times.
    let body: (Int) throws -> Void

    struct Figures {
        var nanoseconds: Double
        var allocations: Double
    }

    /// Batches are measured, and the middle one counts.
    private static let batches = 5

    func measure(seconds: Double) throws -> Figures {
        let clock = ContinuousClock()
        var count = 1
        // What is allocated once is not asked about; and how many there are in a batch is found.
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
