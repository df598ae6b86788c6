package import SegmentedDownloadCore
import Synchronization

/// The state that the engine and a fetching task share: the position reached and the limit.
///
/// Two small locks, neither of which is held while waiting.
package final class SegmentLease: Sendable {
    private enum Waiting {
        case notWaiting
        case forAnswer(CheckedContinuation<LeaseDecision?, Never>)
    }

    private struct State {
        /// The offset of the next byte to write.
        var position: Int64
        /// The end of the write under way. The limit is never lowered below it.
        var reserved: Int64
        var limit: Int64
        var bytesReceived: Int64 = 0
        /// When the current wait at the rate gate began.
        var heldSince: Duration?
        /// The total time of earlier waits at the rate gate.
        var held: Duration = .zero
        var answer: LeaseDecision?
        var waiting = Waiting.notWaiting
        var isRevoked = false
        var isFaulted = false
        var isOver = false
    }

    /// The task that fetches. Used only while it is in ``fetch``, whose lock is held meanwhile.
    private struct Fetch: @unchecked Sendable {
        let task: UnsafeCurrentTask
    }

    package let order: FetchOrder
    private let state: Mutex<State>
    /// Absent before the fetch begins and once it ends.
    private let fetch = Mutex<Fetch?>(nil)

    package init(_ order: FetchOrder) {
        self.order = order
        self.state = Mutex(State(position: order.writesFrom, reserved: order.writesFrom, limit: order.writesFrom))
    }

    // MARK: The fetching task's side

    /// The offset of the next byte to write.
    var position: Int64 { self.state.withLock { $0.position } }

    /// Waits for the engine's decision; `stop` if the lease was revoked.
    package func awaitAnswer() async -> LeaseDecision {
        let decision: LeaseDecision? = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: LeaseDecision? = self.state.withLock { state in
                    if state.isRevoked || state.isOver { return .stop }
                    if let answer = state.answer {
                        state.answer = nil
                        return answer
                    }
                    state.waiting = .forAnswer(continuation)
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            self.wake(with: nil)
        }
        return decision ?? .stop
    }

    /// Records that `count` bytes were received from the network.
    package func received(_ count: Int) {
        self.state.withLock { $0.bytesReceived += Int64(count) }
    }

    /// Reserves up to `count` bytes at the position.
    ///
    /// - Returns: The number reserved, 0 at the limit.
    package func reserve(_ count: Int) -> Int {
        self.state.withLock { state in
            let granted = max(min(Int64(count), state.limit - state.position), 0)
            state.reserved = state.position + granted
            return Int(granted)
        }
    }

    /// Whether the position has reached the limit.
    package var isAtLimit: Bool {
        self.state.withLock { $0.position >= $0.limit }
    }

    /// Advances the position past the reserved bytes, which have been written.
    package func commit() {
        self.state.withLock { $0.position = $0.reserved }
    }

    /// Marks the lease as waiting at the rate gate.
    package func beginHolding(now: Duration) {
        self.state.withLock { $0.heldSince = now }
    }

    package func endHolding(now: Duration) {
        self.state.withLock { state in
            state.held += now - (state.heldSince ?? now)
            state.heldSince = nil
        }
    }

    /// Runs the fetch. If the lease is revoked, the current task is cancelled, and stays so.
    ///
    /// A task group would need two more tasks for each request, a measurable share of what a short file costs.
    package func withRevocation<Answer: Sendable>(_ body: @Sendable () async -> Answer) async -> Answer {
        await withUnsafeCurrentTask { task in
            self.fetch.withLock { $0 = task.map { Fetch(task: $0) } }
            defer { self.fetch.withLock { $0 = nil } }
            if self.isRevoked { task?.cancel() }
            return await body()
        }
    }

    // MARK: The engine's side

    /// Gives the fetching task a decision, now or when it next asks.
    package func answer(_ decision: LeaseDecision) {
        let waiter: CheckedContinuation<LeaseDecision?, Never>? = self.state.withLock { state in
            if case .proceed(let limit, let from) = decision {
                state.limit = max(state.limit, limit)
                state.position = max(state.position, from ?? 0)
                state.reserved = max(state.reserved, state.position)
            }
            guard case .forAnswer(let continuation) = state.waiting else {
                state.answer = decision
                return nil
            }
            state.waiting = .notWaiting
            return continuation
        }
        waiter?.resume(returning: decision)
    }

    /// Lowers the limit, but not below the end of the write under way.
    ///
    /// - Returns: The limit that is now in effect.
    package func narrow(to limit: Int64) -> Int64 {
        self.state.withLock { state in
            state.limit = min(state.limit, max(limit, state.reserved))
            return state.limit
        }
    }

    /// Makes the fetching task close its connection and end.
    ///
    /// - Parameter isFaulted: Whether the connection is late, silent or slow.
    package func revoke(asFaulted isFaulted: Bool) {
        self.state.withLock { state in
            state.isRevoked = true
            state.isFaulted = isFaulted
        }
        self.wake(with: .stop)
        // The lock keeps the task from ending meanwhile. None of its cancellation handlers takes it, and no executor
        // runs a task at once on the thread that resumes it.
        self.fetch.withLock { $0?.task.cancel() }
    }

    package var isRevoked: Bool { self.state.withLock { $0.isRevoked } }

    /// Whether the lease was revoked because its connection is late, silent or slow.
    var isFaulted: Bool { self.state.withLock { $0.isFaulted } }

    package var observation: LeaseObservation {
        self.state.withLock { state in
            LeaseObservation(
                lease: self.order.lease, position: state.position, bytesReceived: state.bytesReceived,
                isWriting: state.reserved > state.position, isHeld: state.heldSince != nil, held: state.held)
        }
    }

    private func wake(with decision: LeaseDecision?) {
        let waiter: CheckedContinuation<LeaseDecision?, Never>? = self.state.withLock { state in
            guard case .forAnswer(let continuation) = state.waiting else {
                state.isOver = true
                return nil
            }
            state.waiting = .notWaiting
            return continuation
        }
        waiter?.resume(returning: decision)
    }
}
