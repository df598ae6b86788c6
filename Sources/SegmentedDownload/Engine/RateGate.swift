import SegmentedDownloadCore
import Synchronization

/// Delays fetches to keep the rate limits.
///
/// A fetch passes the gate with every chunk it has received, before it reads the next. While it waits, the connection's
/// buffers fill and TCP flow control slows the sender. ``RateBudget`` decides; the gate waits. The lock is not taken
/// while there is no limit.
final class RateGate: Sendable {
    private struct Waiter {
        let ticket: RateBudget.Ticket
        /// Resumed with the number of bytes granted; `nil` if the task was cancelled.
        let continuation: CheckedContinuation<Int?, Never>
    }

    private struct State {
        var budget = RateBudget()
        /// At most one for each connection.
        var waiters: [Waiter] = []
        /// Grants for requests whose task has not suspended yet.
        var granted: [RateBudget.Grant] = []
    }

    /// 20 ms: the longest sleep between checks. A fetch with another host or file may arrive meanwhile and be admitted
    /// earlier. Well below a bucket's burst, so no bandwidth is lost.
    private static let look: Duration = .milliseconds(20)

    private let clock: any EngineClock
    private let state = Mutex(State())
    private let isLimited = Atomic(false)
    /// Yields when a fetch begins to wait.
    private let arrivals: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation

    init(clock: any EngineClock) {
        self.clock = clock
        (self.arrivals, self.arrival) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    var now: Duration { self.clock.now }

    // MARK: Adjusting

    func update(_ limits: RateBudget.Limits) {
        self.adjust { $0.update(limits, now: $1) }
    }

    func update(_ download: DownloadID, bytesPerSecond: Int64?) {
        self.adjust { $0.update(download, bytesPerSecond: bytesPerSecond, now: $1) }
    }

    func update(_ download: DownloadID, weight: Double) {
        self.adjust { budget, _ in budget.update(download, weight: weight) }
    }

    func forget(_ download: DownloadID) {
        self.adjust { budget, _ in budget.forget(download) }
    }

    private func adjust(_ change: (inout RateBudget, Duration) -> Void) {
        let now = self.clock.now
        let released = self.state.withLock { state in
            change(&state.budget, now)
            self.isLimited.store(state.budget.isLimited, ordering: .relaxed)
            return Self.release(&state, now: now)
        }
        for (waiter, length) in released { waiter.continuation.resume(returning: length) }
    }

    // MARK: The fetches' side

    /// Whether there is no limit, so that a fetch may pass without asking.
    var isOpen: Bool { !self.isLimited.load(ordering: .relaxed) }

    /// The largest chunk that a fetch may request at once, in bytes.
    func chunkLength(_ download: DownloadID, host: String) -> Int {
        self.state.withLock { $0.budget.chunkLength(download, host: host) }
    }

    /// Waits until some of a chunk may pass.
    ///
    /// - Returns: The number of bytes granted.
    /// - Throws: `CancellationError` if the task is cancelled.
    func pass(_ length: Int, for download: DownloadID, host: String) async throws -> Int {
        let now = self.clock.now
        let (ticket, released) = self.state.withLock { state in
            let ticket = state.budget.request(length, for: download, host: host)
            return (ticket, Self.release(&state, now: now))
        }
        for (waiter, length) in released { waiter.continuation.resume(returning: length) }
        let granted = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Int?? = self.state.withLock { state in
                    if let index = state.granted.firstIndex(where: { $0.ticket == ticket }) {
                        return state.granted.remove(at: index).length
                    }
                    guard !Task.isCancelled else {
                        state.budget.withdraw(ticket)
                        return .some(nil)
                    }
                    state.waiters.append(Waiter(ticket: ticket, continuation: continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) } else { self.arrival.yield() }
            }
        } onCancel: {
            let waiter = self.state.withLock { state -> Waiter? in
                guard let index = state.waiters.firstIndex(where: { $0.ticket == ticket }) else { return nil }
                state.budget.withdraw(ticket)
                return state.waiters.remove(at: index)
            }
            waiter?.continuation.resume(returning: nil)
        }
        guard let granted else { throw CancellationError() }
        return granted
    }

    // MARK: The engine's side

    /// Admits waiting fetches as time allows, until the task is cancelled.
    func run() async {
        for await _ in self.arrivals {
            while let time = self.openUp() {
                guard (try? await self.clock.sleep(until: time)) != nil else { return }
            }
        }
    }

    /// Admits the fetches that may pass now.
    ///
    /// - Returns: When to check again; `nil` if no fetch waits.
    private func openUp() -> Duration? {
        let now = self.clock.now
        let (released, time) = self.state.withLock { state in
            let released = Self.release(&state, now: now)
            return (released, state.budget.grantsAt(now: now))
        }
        for (waiter, length) in released { waiter.continuation.resume(returning: length) }
        return time.map { min($0, now + Self.look) }
    }

    /// The waiters to resume, and how many bytes each may pass. A grant whose task has not suspended yet is kept for
    /// it.
    private static func release(_ state: inout State, now: Duration) -> [(Waiter, Int)] {
        var released: [(Waiter, Int)] = []
        for grant in state.budget.grant(now: now) {
            if let index = state.waiters.firstIndex(where: { $0.ticket == grant.ticket }) {
                released.append((state.waiters.remove(at: index), grant.length))
            } else {
                state.granted.append(grant)
            }
        }
        return released
    }
}

/// A download's access to the gate.
struct RatePass: Sendable {
    let gate: RateGate
    let download: DownloadID
    let host: String

    /// Waits until all of `count` bytes have passed.
    func callAsFunction(all count: Int, of lease: SegmentLease) async throws {
        var left = count
        while left > 0 { left -= try await self(left, of: lease) }
    }

    /// Waits until some of `count` bytes may pass.
    ///
    /// - Returns: How many.
    func callAsFunction(_ count: Int, of lease: SegmentLease) async throws -> Int {
        guard !self.gate.isOpen else { return count }
        let length = min(count, self.gate.chunkLength(self.download, host: self.host))
        lease.beginHolding(now: self.gate.now)
        defer { lease.endHolding(now: self.gate.now) }
        return try await self.gate.pass(length, for: self.download, host: self.host)
    }
}
