import Synchronization

/// Those who want to know where segments stand, until the engine's loop tells them: it alone has the plans.
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

    /// Waits until the loop answers; none where it has ended, or ends before.
    ///
    /// - Parameter nudge: has the loop answer.
    func look(at job: DownloadJob, nudge: () -> Void) async -> [SegmentStatus] {
        await withCheckedContinuation { continuation in
            let isOver = self.state.withLock { state in
                if !state.isOver { state.waiting.append(Look(job: job, continuation: continuation)) }
                return state.isOver
            }
            if isOver { continuation.resume(returning: []) } else { nudge() }
        }
    }

    /// Tells everybody who waits.
    func answer(_ segments: (DownloadJob) -> [SegmentStatus]) {
        let looks = self.state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for look in looks { look.continuation.resume(returning: segments(look.job)) }
    }

    /// The loop has ended, and answers nobody any more.
    func close() {
        self.state.withLock { $0.isOver = true }
        self.answer { _ in [] }
    }
}
