import Synchronization

/// The requests that an origin received and the bytes it sent, for tests to inspect and wait for.
///
/// Every `path` is a prefix of the request target; the empty one matches everything.
public final class OriginLog: Sendable {
    public struct Entry: Sendable {
        /// The request target: path and query.
        public let path: String
        public let method: String
        public let headers: [(name: String, value: String)]
        /// The status of the answer; zero for none.
        public let status: Int
        /// The connection's ordinal.
        public let connection: Int
        /// The address of the connection's client.
        public let peer: String
        /// When the request arrived, since the origin's start.
        public let time: Duration
        /// Bytes of body passed to the system.
        public internal(set) var bytesSent: Int64 = 0
        /// Whether the origin has finished the answer, or the connection is closed.
        public internal(set) var isFinished = false

        public var range: String? { self["range"] }
        public var ifRange: String? { self["if-range"] }

        /// The first value of a field, whose name is given in lower case.
        public subscript(name: String) -> String? {
            self.headers.first { $0.name.lowercased() == name }?.value
        }
    }

    public struct Snapshot: Sendable {
        public let requests: [Entry]
        /// The most of these requests in progress at once, including refused ones.
        public let requestsPeak: Int
        /// The most connections open at once, of any path.
        public let connectionsPeak: Int
        /// Connections accepted, of any path.
        public let connectionsCount: Int

        /// Requests answered with 429 or 503.
        public var rejected: Int { self.requests.count { $0.status == 429 || $0.status == 503 } }
        public var bytesSent: Int64 { self.requests.reduce(0) { $0 + $1.bytesSent } }
    }

    /// Identifies an entry until the log is reset.
    struct ID: Hashable, Sendable {
        fileprivate var epoch: Int
        fileprivate var index: Int
    }

    private struct State {
        var epoch = 0
        var entries: [Entry] = []
        /// Indices into `entries`, as requests begin (`true`) and end.
        var edges: [(index: Int, isStart: Bool)] = []
        var connectionsOpen = 0
        var connectionsPeak = 0
        var connectionsCount = 0
        var connectionLast = 0
        var waiters: [Waiter] = []
        var waiterLast = 0
    }

    private struct Waiter {
        enum Subject { case requests, bytes }

        var id: Int
        var subject: Subject
        var path: String
        var remaining: Int64
        var continuation: CheckedContinuation<Void, Never>
    }

    private let state = Mutex(State())

    init() {}

    public func snapshot(path: String = "") -> Snapshot {
        self.state.withLock { state in
            var live = 0
            var peak = 0
            for edge in state.edges where state.entries[edge.index].path.hasPrefix(path) {
                live += edge.isStart ? 1 : -1
                peak = max(peak, live)
            }
            return Snapshot(
                requests: state.entries.filter { $0.path.hasPrefix(path) },
                requestsPeak: peak,
                connectionsPeak: state.connectionsPeak,
                connectionsCount: state.connectionsCount
            )
        }
    }

    /// Clears all requests; open connections stay counted, and requests in progress are no longer recorded.
    public func reset() {
        self.state.withLock { state in
            state.epoch += 1
            state.entries = []
            state.edges = []
            state.connectionsPeak = state.connectionsOpen
            state.connectionsCount = state.connectionsOpen
        }
    }

    /// Returns after this number of requests since the last reset, or when the task is cancelled.
    public func waitForRequests(_ count: Int, path: String = "") async {
        await self.wait(for: .requests, Int64(count), path: path) { Int64($0.count) }
    }

    /// Returns after this number of bytes of body since the last reset, or when the task is cancelled.
    public func waitForBytes(sent bytes: Int64, path: String = "") async {
        await self.wait(for: .bytes, bytes, path: path) { $0.reduce(0) { $0 + $1.bytesSent } }
    }

    private func wait(for subject: Waiter.Subject, _ count: Int64, path: String, seen: ([Entry]) -> Int64) async {
        let id = self.state.withLock { state in
            state.waiterLast += 1
            return state.waiterLast
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = self.state.withLock { state in
                    let remaining = count - seen(state.entries.filter { $0.path.hasPrefix(path) })
                    // Under the lock: a later cancellation finds the waiter in the list.
                    guard remaining > 0, !Task.isCancelled else { return true }
                    state.waiters.append(
                        Waiter(id: id, subject: subject, path: path, remaining: remaining, continuation: continuation)
                    )
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            let waiter = self.state.withLock { state in
                state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume()
        }
    }
}

extension OriginLog {
    func connectionOpened() -> Int {
        self.state.withLock { state in
            state.connectionLast += 1
            state.connectionsCount += 1
            state.connectionsOpen += 1
            state.connectionsPeak = max(state.connectionsPeak, state.connectionsOpen)
            return state.connectionLast
        }
    }

    func connectionClosed() {
        self.state.withLock { $0.connectionsOpen -= 1 }
    }

    func requestStarted(_ entry: Entry) -> ID {
        let (id, done) = self.state.withLock { state in
            let id = ID(epoch: state.epoch, index: state.entries.count)
            state.entries.append(entry)
            state.edges.append((id.index, isStart: true))
            return (id, Self.advance(&state.waiters, .requests, path: entry.path, by: 1))
        }
        for waiter in done { waiter.continuation.resume() }
        return id
    }

    func bytesSent(_ count: Int, for id: ID) {
        let done = self.state.withLock { state -> [Waiter] in
            guard id.epoch == state.epoch else { return [] }
            state.entries[id.index].bytesSent += Int64(count)
            return Self.advance(&state.waiters, .bytes, path: state.entries[id.index].path, by: Int64(count))
        }
        for waiter in done { waiter.continuation.resume() }
    }

    func requestFinished(_ id: ID) {
        self.state.withLock { state in
            guard id.epoch == state.epoch, !state.entries[id.index].isFinished else { return }
            state.entries[id.index].isFinished = true
            state.edges.append((id.index, isStart: false))
        }
    }

    /// Removes the waiters whose count is reached.
    private static func advance(
        _ waiters: inout [Waiter],
        _ subject: Waiter.Subject,
        path: String,
        by count: Int64
    ) -> [Waiter] {
        if waiters.isEmpty { return [] }
        for index in waiters.indices where waiters[index].subject == subject && path.hasPrefix(waiters[index].path) {
            waiters[index].remaining -= count
        }
        let done = waiters.filter { $0.remaining <= 0 }
        waiters.removeAll { $0.remaining <= 0 }
        return done
    }
}
