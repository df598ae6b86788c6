import Simulator
import Synchronization

/// Runs `body` on a seeded executor until it returns. Simulated time advances when no job is left to run.
///
/// The jobs run on the caller's thread, in a task that inherits the current test and reports its issues there.
func withSimulatedClock(_ body: @escaping @Sendable (SimulatedClock) async throws -> Void) throws {
    let clock = SimulatedClock()
    let executor = SeededExecutor(seed: 1)
    let outcome = Mutex<Result<Void, any Error>?>(nil)
    _ = Task(executorPreference: executor) {
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(clock))
        } catch {
            result = .failure(error)
        }
        outcome.withLock { $0 = result }
    }
    while true {
        if let result = outcome.withLock({ $0 }) { return try result.get() }
        guard executor.runOne() || clock.advance() else { throw NothingLeft() }
    }
}

/// No job and no timer is left, and the run is not over.
private struct NothingLeft: Error {}
