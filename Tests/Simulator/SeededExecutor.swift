import SegmentedDownloadCore

/// Runs tasks one job at a time on the thread that calls it, and draws the next job from a seed.
///
/// Child tasks inherit it, so that a whole engine runs in one order, and in the same order for the same seed.
package final class SeededExecutor: TaskExecutor, @unchecked Sendable {
    // Unchecked: everything runs on the one thread that calls `runOne`. A job from another thread would break the
    // replay, and traps.
    private var jobs: [UnownedJob] = []
    private var generator: SplitMix64
    private let thread = ThreadIdentity.current

    package init(seed: UInt64) {
        self.generator = SplitMix64(seed: seed)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        precondition(ThreadIdentity.current == self.thread, "a job came from a thread that is not simulated")
        self.jobs.append(UnownedJob(job))
    }

    /// Runs one of the waiting jobs; returns false if none waits.
    package func runOne() -> Bool {
        guard !self.jobs.isEmpty else { return false }
        let index = Int.random(in: 0..<self.jobs.count, using: &self.generator)
        self.jobs.swapAt(index, self.jobs.count - 1)
        self.jobs.removeLast().runSynchronously(on: self.asUnownedTaskExecutor())
        return true
    }
}
