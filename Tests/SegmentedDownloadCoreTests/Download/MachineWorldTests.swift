import Simulator
import TestSupport
import Testing

/// One after the other, beside the other tests.
@Suite("The state machine in a world of faults", .serialized)
struct MachineWorldTests {
    /// Each argument runs so many seeds.
    private static let seedsPerArgument: UInt64 = 75

    @Test("Whatever happens, it keeps its budgets, never spoils a file, and comes to an end", arguments: UInt64(0)..<8)
    func survives(block: UInt64) async throws {
        for seed in (block * Self.seedsPerArgument)..<((block + 1) * Self.seedsPerArgument) {
            let violations = try await aside {
                var world = MachineWorld(seed: seed)
                return world.run()
            }
            #expect(violations.isEmpty, "replay with \(seed)")
        }
    }
}
