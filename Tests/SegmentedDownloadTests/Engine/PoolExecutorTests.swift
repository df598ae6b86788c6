import Foundation
import Synchronization
import TestSupport
import Testing

@testable import SegmentedDownload

/// The threads for blocking steps: few while steps are short, and never one step behind another that is held up.
@Suite("Threads for steps")
struct PoolExecutorTests {
    private final class Sum: Sendable {
        let value = Mutex(0)
    }

    /// Runs jobs one after the other, so that the executor takes jobs for short.
    private static func warm(_ executor: PoolExecutor) async {
        for _ in 0..<200 { await Task(executorPreference: executor) {}.value }
    }

    @Test("Jobs that wait for each other all get a thread", arguments: [false, true])
    func together(sparesThreads: Bool) async {
        let executor = PoolExecutor(threads: 3, sparesThreads: sparesThreads)
        let (arrived, everyone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // Nothing is known yet about how long jobs take.
        let jobs = (0..<3).map { _ in
            Task(executorPreference: executor) {
                arrived.signal()
                Self.wait(for: everyone)
            }
        }
        await Task.detached { for _ in 0..<3 { Self.wait(for: arrived) } }.value
        for _ in 0..<3 { everyone.signal() }
        for job in jobs { await job.value }
        await executor.end()
    }

    @Test("A thread is started when it is first needed")
    func firstNeeded() async {
        let executor = PoolExecutor(threads: 4)
        #expect(executor.startedCount == 0)
        await Task(executorPreference: executor) {}.value
        #expect(executor.startedCount == 1)
        await executor.end()
    }

    @Test("An executor that had no job starts no thread after its end")
    func unused() async {
        let executor = PoolExecutor(threads: 2)
        await executor.end()
        let name = await Task(executorPreference: executor) { threadName() }.value
        #expect(name.hasPrefix("SGLTN-TP-#"), "\(name)")
    }

    @Test("A job behind one that is held up gets a thread when it is unblocked")
    func heldUp() async {
        let executor = PoolExecutor(threads: 2, sparesThreads: true)
        await Self.warm(executor)
        let (isHeld, isFreed) = (Latch(), DispatchSemaphore(value: 0))
        let held = Task(executorPreference: executor) {
            isHeld.raise()
            Self.wait(for: isFreed)
        }
        while !isHeld.isRaised { await Task.yield() }
        let isDone = Latch()
        let behind = Task(executorPreference: executor) { _ = isDone.raise() }
        while !isDone.isRaised {
            executor.unblock()
            await Task.yield()
        }
        isFreed.signal()
        await held.value
        await behind.value
        await executor.end()
    }

    @Test("Jobs beside one that is held up run, without being unblocked")
    func beside() async {
        let executor = PoolExecutor(threads: 2, sparesThreads: true)
        await Self.warm(executor)
        await Task(executorPreference: executor) {
            // By then the executor knows that this job is long.
            let start = ContinuousClock.now
            while ContinuousClock.now - start < .milliseconds(1) {}
            // One at a time, so that the other thread ends its work in between.
            for _ in 0..<100 {
                let isDone = DispatchSemaphore(value: 0)
                Task(executorPreference: executor) { _ = isDone.signal() }
                Self.wait(for: isDone)
            }
        }.value
        await executor.end()
    }

    @Test("Every job runs, on whichever thread", arguments: [1, 4])
    func all(threads: Int) async {
        let executor = PoolExecutor(threads: threads, sparesThreads: true)
        let sum = Sum()
        await withTaskGroup { group in
            for number in 1...2000 {
                group.addTask(executorPreference: executor) {
                    await Task.yield()
                    sum.value.withLock { $0 += number }
                }
            }
        }
        #expect(sum.value.withLock { $0 } == 2_001_000)
        await executor.end()
        // Jobs that come after the end run too: a task may be left over.
        await Task(executorPreference: executor) { sum.value.withLock { $0 = 0 } }.value
        #expect(sum.value.withLock { $0 } == 0)
    }

    /// Blocks the thread, which is what is tested.
    private static func wait(for semaphore: DispatchSemaphore) { semaphore.wait() }
}
