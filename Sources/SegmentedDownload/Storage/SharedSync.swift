import Synchronization

/// Has those who ask for the same thing to be synced at the same time share one sync.
///
/// Whoever asks while a sync runs waits for the next one, which begins after he has asked and so covers what he did before.
/// Of files that end together each would otherwise have its directory synced for itself.
package final class SharedSync: Sendable {
    private struct State {
        /// Those who asked since the sync that runs was begun, by what they asked for.
        var waiting: [String: [CheckedContinuation<Turn, Never>]] = [:]
    }

    /// What somebody who waited does next.
    private enum Turn: Sendable {
        /// Sync for himself and the others that waited.
        case leads([CheckedContinuation<Turn, Never>])
        /// Somebody else has synced for him.
        case isDone(StorageError?)
    }

    private let state = Mutex(State())

    package init() {}

    /// How many wait for the next sync of a key.
    package func waitingCount(_ key: String) -> Int { self.state.withLock { $0.waiting[key]?.count ?? 0 } }

    /// Returns once `sync` was called for this key after this was, and has ended; by whomever.
    ///
    /// - Throws: what that sync threw, to all who shared it.
    package func run(_ key: String, _ sync: () async throws(StorageError) -> Void) async throws(StorageError) {
        let turn = await withCheckedContinuation { (continuation: CheckedContinuation<Turn, Never>) in
            let isFree = self.state.withLock { state in
                guard state.waiting[key] != nil else {
                    state.waiting[key] = []
                    return true
                }
                state.waiting[key]?.append(continuation)
                return false
            }
            if isFree { continuation.resume(returning: .leads([])) }
        }
        let followers: [CheckedContinuation<Turn, Never>]
        switch turn {
        case .isDone(let error?): throw error
        case .isDone(nil): return
        case .leads(let others): followers = others
        }
        var failure: StorageError?
        do throws(StorageError) {
            try await sync()
        } catch {
            failure = error
        }
        self.passOn(key)
        for follower in followers { follower.resume(returning: .isDone(failure)) }
        if let failure { throw failure }
    }

    /// The first of those who have come meanwhile syncs next, for all of them.
    private func passOn(_ key: String) {
        let next: (CheckedContinuation<Turn, Never>, [CheckedContinuation<Turn, Never>])? = self.state.withLock {
            state in
            guard let waiting = state.waiting[key], let first = waiting.first else {
                state.waiting[key] = nil
                return nil
            }
            state.waiting[key] = []
            return (first, Array(waiting.dropFirst()))
        }
        if let (first, others) = next { first.resume(returning: .leads(others)) }
    }
}
