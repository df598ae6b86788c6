import Dispatch
import Synchronization

/// Runs `body` for one seed after another, several at a time, until the seeds end or `goesOn` returns false.
///
/// - Parameter goesOn: Called before each seed.
func runSeeds(
    from first: UInt64, count: UInt64 = .max, workers: Int, while goesOn: @Sendable () -> Bool,
    body: @Sendable (UInt64) -> Void
) {
    let next = Atomic<UInt64>(0)
    DispatchQueue.concurrentPerform(iterations: workers) { _ in
        while goesOn() {
            let number = next.add(1, ordering: .relaxed).oldValue
            guard number < count else { return }
            body(first &+ number)
        }
    }
}
