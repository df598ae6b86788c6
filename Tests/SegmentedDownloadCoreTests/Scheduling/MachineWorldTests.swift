import Simulator
import Testing

/// One after the other and in turns with other tests, which would wait for as long as all of it takes otherwise.
@Suite("The state machine in a world of faults", .serialized)
struct MachineWorldTests {
    /// Each argument runs so many seeds.
    private static let seedsPerArgument: UInt64 = 75

    @Test("Whatever happens, it keeps its budgets, never spoils a file, and comes to an end", arguments: UInt64(0)..<8)
    func survives(block: UInt64) async {
        for seed in (block * Self.seedsPerArgument)..<((block + 1) * Self.seedsPerArgument) {
            var world = MachineWorld(seed: seed)
            let violations = world.run()
            #expect(violations.isEmpty, "replay with \(seed)")
            await Task.yield()
        }
    }
}
