import Simulator
import TestSupport
import Testing

/// Serialized, because the other tests run at the same time.
@Suite("The state machine in a world of faults", .serialized)
struct MachineWorldTests {
    /// Each argument runs this number of seeds.
    private static let seedsPerArgument: UInt64 = 75

    @Test("With any faults, budgets hold, no file is corrupt, and every download ends", arguments: UInt64(0)..<8)
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
