import Synchronization

/// Pending requests for segment snapshots. The engine's loop answers them, because it owns the plans.
final class SegmentSnapshot: Sendable {
    private struct Look {
        let job: DownloadJob
        let continuation: CheckedContinuation<[SegmentStatus], Never>
    }

    private struct State {
        var waiting: [Look] = []
        var isOver = false
    }

    private let state = Mutex(State())

    /// Waits for the loop's answer; empty if the loop has ended.
    ///
    /// - Parameter nudge: Makes the loop answer.
    func look(at job: DownloadJob, nudge: () -> Void) async -> [SegmentStatus] {
        await withCheckedContinuation { continuation in
            let isOver = self.state.withLock { state in
                if !state.isOver { state.waiting.append(Look(job: job, continuation: continuation)) }
                return state.isOver
            }
            if isOver { continuation.resume(returning: []) } else { nudge() }
        }
    }

    /// Answers all pending requests.
    func answer(_ segments: (DownloadJob) -> [SegmentStatus]) {
        let looks = self.state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for look in looks { look.continuation.resume(returning: segments(look.job)) }
    }

    /// Answers all pending and later requests with an empty array, after the loop has ended.
    func close() {
        self.state.withLock { $0.isOver = true }
        self.answer { _ in [] }
    }
}
