import Simulator
import Testing

@Suite("The state machine in a world of faults")
struct MachineWorldTests {
    /// Each argument runs so many seeds.
    private static let seedsPerArgument: UInt64 = 75

    @Test("Whatever happens, it keeps its budgets, never spoils a file, and comes to an end", arguments: UInt64(0)..<8)
    func survives(block: UInt64) {
        for seed in (block * Self.seedsPerArgument)..<((block + 1) * Self.seedsPerArgument) {
            var world = MachineWorld(seed: seed)
            let violations = world.run()
            #expect(violations.isEmpty, "replay with \(seed)")
        }
    }
}
