import SegmentedDownload
import SegmentedDownloadCore

/// Time that passes only when nothing is left to be done in the present.
package final class SimulatedClock: EngineClock, @unchecked Sendable {
    private struct Sleeper {
        let time: Duration
        let ordinal: Int
        let continuation: UnsafeContinuation<Bool, Never>
    }

    // Unchecked, as all of the simulation: one thread.
    package private(set) var now: Duration = .zero
    private var sleepers: [Sleeper] = []
    private var ordinalNext = 0

    package init() {}

    package func sleep(until time: Duration) async throws {
        let ordinal = self.ordinalNext
        self.ordinalNext += 1
        let wasCancelled = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                if Task.isCancelled {
                    continuation.resume(returning: true)
                } else {
                    self.insert(Sleeper(time: time, ordinal: ordinal, continuation: continuation))
                }
            }
        } onCancel: {
            if let index = self.sleepers.firstIndex(where: { $0.ordinal == ordinal }) {
                self.sleepers.remove(at: index).continuation.resume(returning: true)
            }
        }
        if wasCancelled { throw CancellationError() }
    }

    /// Returns when `time` has come, cancelled or not: as the disk does.
    package func wait(until time: Duration) async {
        _ = await withUnsafeContinuation { continuation in
            self.insert(Sleeper(time: time, ordinal: self.ordinalNext, continuation: continuation))
            self.ordinalNext += 1
        }
    }

    /// The latest first, so that the next one is at the end.
    private func insert(_ sleeper: Sleeper) {
        let index = self.sleepers.partitioningIndex {
            ($0.time, $0.ordinal) < (sleeper.time, sleeper.ordinal)
        }
        self.sleepers.insert(sleeper, at: index)
    }

    /// Goes on to the next moment somebody waits for; false if nobody waits.
    package func advance() -> Bool {
        guard let sleeper = self.sleepers.popLast() else { return false }
        self.now = max(self.now, sleeper.time)
        sleeper.continuation.resume(returning: false)
        return true
    }
}
