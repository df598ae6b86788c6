package import SegmentedDownloadCore
import Synchronization

/// The state that the engine and a fetching task share: the position reached and the limit.
///
/// One small lock, which is never held while waiting.
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

    /// Waits until the lease is revoked or has ended.
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
        self.end()
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

    private func end() {
        let waiter = self.state.withLock { state in
            state.isOver = true
            defer { state.revocation = nil }
            return state.revocation
        }
        waiter?.resume()
    }
}
