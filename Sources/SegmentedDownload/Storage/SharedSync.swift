import Synchronization

/// Lets concurrent callers share one sync of the same key.
///
/// A caller that arrives while a sync is running waits for the next one, which begins after the call and so covers
/// everything the caller did before. Without it, each of several files that finish together would sync the directory
/// again.
package final class SharedSync: Sendable {
    private struct State {
        /// Callers waiting for the next sync, by key. An entry exists while a sync of the key is running.
        var waiting: [String: [CheckedContinuation<Turn, Never>]] = [:]
    }

    /// What a waiting caller does next.
    private enum Turn: Sendable {
        /// Sync on behalf of itself and the other waiting callers.
        case leads([CheckedContinuation<Turn, Never>])
        /// Return: another caller has synced.
        case isDone(StorageError?)
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of callers that wait for the next sync of a key.
    package func waitingCount(_ key: String) -> Int { self.state.withLock { $0.waiting[key]?.count ?? 0 } }

    /// Returns when a sync of the key that began after this call has ended, whether or not this caller ran it.
    ///
    /// - Throws: The error of that sync, for every caller that shared it.
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

    /// Lets the first waiting caller run the next sync on behalf of all.
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
