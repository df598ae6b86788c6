package import SegmentedDownloadCore
import Synchronization

/// What the engine and the task that fetches a segment share: how far it has come, and how far it may go.
///
/// One small lock; nobody waits while holding it.
package final class SegmentLease: Sendable {
    private enum Waiting {
        case nobody
        case forAnswer(CheckedContinuation<LeaseDecision?, Never>)
    }

    private struct State {
        /// The next byte to be written.
        var position: Int64
        /// The end of what is being written right now; a limit is never lowered below it.
        var reserved: Int64
        var limit: Int64
        var bytesReceived: Int64 = 0
        /// Since when it is held back by a rate limit, and how long it was before.
        var heldSince: Duration?
        var held: Duration = .zero
        var answer: LeaseDecision?
        var waiting = Waiting.nobody
        var isRevoked = false
        var isFaulted = false
        var revocation: CheckedContinuation<Void, Never>?
        var isOver = false
    }

    package let order: FetchOrder
    private let state: Mutex<State>

    package init(_ order: FetchOrder) {
        self.order = order
        self.state = Mutex(State(position: order.writesFrom, reserved: order.writesFrom, limit: order.writesFrom))
    }

    // MARK: The fetching task's side

    /// The next byte to be written.
    var position: Int64 { self.state.withLock { $0.position } }

    /// Waits for the engine to say how far to go; `stop` once the lease is revoked.
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

    /// Notes that `count` bytes came from the network.
    package func received(_ count: Int) {
        self.state.withLock { $0.bytesReceived += Int64(count) }
    }

    /// Takes up to `count` bytes' worth of room at the position; less, down to none, at the limit.
    package func reserve(_ count: Int) -> Int {
        self.state.withLock { state in
            let granted = max(min(Int64(count), state.limit - state.position), 0)
            state.reserved = state.position + granted
            return Int(granted)
        }
    }

    /// Whether there is no room left.
    package var isAtLimit: Bool {
        self.state.withLock { $0.position >= $0.limit }
    }

    /// The reserved bytes are written.
    package func commit() {
        self.state.withLock { $0.position = $0.reserved }
    }

    /// A rate limit holds it back from now on.
    package func beginHolding(now: Duration) {
        self.state.withLock { $0.heldSince = now }
    }

    package func endHolding(now: Duration) {
        self.state.withLock { state in
            state.held += now - (state.heldSince ?? now)
            state.heldSince = nil
        }
    }

    /// Returns when the lease is revoked or over.
    package func awaitRevocation() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = self.state.withLock { state in
                    if state.isRevoked || state.isOver || Task.isCancelled { return true }
                    state.revocation = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            self.end()
        }
    }

    // MARK: The engine's side

    /// Answers the fetching task, which is waiting or will soon.
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
            state.waiting = .nobody
            return continuation
        }
        waiter?.resume(returning: decision)
    }

    /// Lowers the limit, though not below what is being written; returns where it is now.
    package func narrow(to limit: Int64) -> Int64 {
        self.state.withLock { state in
            state.limit = min(state.limit, max(limit, state.reserved))
            return state.limit
        }
    }

    /// Makes the fetching task close its connection and end.
    ///
    /// - Parameter isFaulted: whether the connection is at fault.
    package func revoke(asFaulted isFaulted: Bool) {
        self.state.withLock { state in
            state.isRevoked = true
            state.isFaulted = isFaulted
        }
        self.wake(with: .stop)
        self.end()
    }

    package var isRevoked: Bool { self.state.withLock { $0.isRevoked } }

    /// Whether it was revoked because its connection is at fault.
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
            state.waiting = .nobody
            return continuation
        }
        waiter?.resume(returning: decision)
    }

    private func end() {
        let waiter = self.state.withLock { state in
            state.isOver = true
            defer { state.revocation = nil }
            return state.revocation
        }
        waiter?.resume()
    }
}
