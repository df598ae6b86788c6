import Synchronization

/// Pending requests for segment snapshots. The engine's loop answers them, because it owns the plans.
final class SegmentSnapshot: Sendable {
    private struct Waiting {
        let job: DownloadJob
        let continuation: CheckedContinuation<[SegmentStatus], Never>
    }

    private struct State {
        var waiting: [Waiting] = []
        var isOver = false
    }

    private let state = Mutex(State())

    /// Waits for the loop's answer; empty if the loop has ended.
    ///
    /// - Parameter wake: Makes the loop answer.
    func segments(of job: DownloadJob, wake: () -> Void) async -> [SegmentStatus] {
        await withCheckedContinuation { continuation in
            let isOver = self.state.withLock { state in
                if !state.isOver { state.waiting.append(Waiting(job: job, continuation: continuation)) }
                return state.isOver
            }
            if isOver { continuation.resume(returning: []) } else { wake() }
        }
    }

    /// Answers all pending requests.
    func answer(_ segments: (DownloadJob) -> [SegmentStatus]) {
        let waiting = self.state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for one in waiting { one.continuation.resume(returning: segments(one.job)) }
    }

    /// Answers all pending and later requests with an empty array, after the loop has ended.
    func close() {
        self.state.withLock { $0.isOver = true }
        self.answer { _ in [] }
    }
}
