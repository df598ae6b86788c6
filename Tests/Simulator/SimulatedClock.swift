import SegmentedDownload
import SegmentedDownloadCore

/// A clock that advances only when no job is left to run.
package final class SimulatedClock: EngineClock, @unchecked Sendable {
    private struct Sleeper {
        let time: Duration
        let ordinal: Int
        let continuation: UnsafeContinuation<Bool, Never>
    }

    // Unchecked: the whole simulation runs on one thread.
    package private(set) var now: Duration = .zero
    private var sleepers: [Sleeper] = []
    private var ordinalNext = 0

    package init() {}

    /// 14 November 2023, when the first world begins: the files of simulated origins are of that day.
    private static let epoch: Int64 = 1_700_000_000

    package var secondsSinceEpoch: Int64 { Self.epoch + self.now.components.seconds }

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

    /// Returns at `time` even if the task is cancelled, as a disk operation does.
    package func wait(until time: Duration) async {
        _ = await withUnsafeContinuation { continuation in
            self.insert(Sleeper(time: time, ordinal: self.ordinalNext, continuation: continuation))
            self.ordinalNext += 1
        }
    }

    /// Keeps the latest first, so that the next one is at the end.
    private func insert(_ sleeper: Sleeper) {
        let index = self.sleepers.partitioningIndex {
            ($0.time, $0.ordinal) < (sleeper.time, sleeper.ordinal)
        }
        self.sleepers.insert(sleeper, at: index)
    }

    /// Advances to the next time that a task waits for; returns false if none waits.
    package func advance() -> Bool {
        guard let sleeper = self.sleepers.popLast() else { return false }
        self.now = max(self.now, sleeper.time)
        sleeper.continuation.resume(returning: false)
        return true
    }
}
