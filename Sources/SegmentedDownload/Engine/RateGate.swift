import SegmentedDownloadCore
import Synchronization

/// Holds fetches back so that no more bytes come in a second than may.
///
/// A fetch passes here with every piece it received, before it asks for the next: while it waits its connection's buffers fill,
/// and TCP itself slows the sender down. ``RateBudget`` decides; this waits. Where nothing is limited nobody takes its lock.
final class RateGate: Sendable {
    private struct Waiter {
        let ticket: RateBudget.Ticket
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var budget = RateBudget()
        /// As many as there are connections.
        var waiters: [Waiter] = []
    }

    /// Somebody with another host or file may come while the gate waits for those it knows, and may pass sooner: it looks
    /// again so often. Well below the burst a bucket keeps, so that nothing is lost by it.
    private static let look: Duration = .milliseconds(20)

    private let clock: any EngineClock
    private let state = Mutex(State())
    private let isLimited = Atomic(false)
    /// Told when somebody begins to wait.
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
        for waiter in released { waiter.continuation.resume(returning: true) }
    }

    // MARK: The fetches' side

    /// Whether a fetch may pass without asking.
    var isOpen: Bool { !self.isLimited.load(ordering: .relaxed) }

    /// How much of what a fetch has in hand it may ask for at once.
    func pieceLength(_ download: DownloadID, host: String) -> Int {
        self.state.withLock { $0.budget.pieceLength(download, host: host) }
    }

    /// Returns when a piece may be taken.
    ///
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    func pass(_ length: Int, for download: DownloadID, host: String) async throws {
        let now = self.clock.now
        let (ticket, released) = self.state.withLock { state in
            let ticket = state.budget.request(length, for: download, host: host)
            return (ticket, Self.grant(&state, to: ticket, now: now))
        }
        for waiter in released.waiters { waiter.continuation.resume(returning: true) }
        guard !released.isGranted else { return }
        let mayPass = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver: Bool? = self.state.withLock { state in
                    guard !Task.isCancelled else {
                        state.budget.withdraw(ticket)
                        return false
                    }
                    // The gate may have granted it in the meantime.
                    guard state.budget.isWaiting(ticket) else { return true }
                    state.waiters.append(Waiter(ticket: ticket, continuation: continuation))
                    return nil
                }
                if let isOver { continuation.resume(returning: isOver) } else { self.arrival.yield() }
            }
        } onCancel: {
            let waiter = self.state.withLock { state -> Waiter? in
                state.budget.withdraw(ticket)
                guard let index = state.waiters.firstIndex(where: { $0.ticket == ticket }) else { return nil }
                return state.waiters.remove(at: index)
            }
            waiter?.continuation.resume(returning: false)
        }
        if !mayPass { throw CancellationError() }
    }

    // MARK: The engine's side

    /// Lets through who waits, as time allows, until the task is cancelled.
    func run() async {
        for await _ in self.arrivals {
            while let time = self.openUp() {
                guard (try? await self.clock.sleep(until: time)) != nil else { return }
            }
        }
    }

    /// Lets through whoever may pass now; when to look again, if somebody still waits.
    private func openUp() -> Duration? {
        let now = self.clock.now
        let (released, time) = self.state.withLock { state in
            let released = Self.release(&state, now: now)
            return (released, state.budget.grantsAt(now: now))
        }
        for waiter in released { waiter.continuation.resume(returning: true) }
        return time.map { min($0, now + Self.look) }
    }

    private static func release(_ state: inout State, now: Duration) -> [Waiter] {
        Self.take(state.budget.grant(now: now), from: &state)
    }

    private static func grant(
        _ state: inout State, to ticket: RateBudget.Ticket, now: Duration
    ) -> (isGranted: Bool, waiters: [Waiter]) {
        let granted = state.budget.grant(now: now)
        return (granted.contains(ticket), Self.take(granted, from: &state))
    }

    /// Those among the granted that already wait; the others will see it when they come to.
    private static func take(_ granted: [RateBudget.Ticket], from state: inout State) -> [Waiter] {
        granted.compactMap { ticket in
            state.waiters.firstIndex { $0.ticket == ticket }.map { state.waiters.remove(at: $0) }
        }
    }
}

/// One download's way through the gate, one piece at a time.
struct RatePass: Sendable {
    let gate: RateGate
    let download: DownloadID
    let host: String

    /// Waits until all of the `count` bytes have been taken.
    func callAsFunction(all count: Int, of lease: SegmentLease) async throws {
        var left = count
        while left > 0 { left -= try await self(left, of: lease) }
    }

    /// Waits until some of the `count` bytes in hand may be taken, and says how many.
    func callAsFunction(_ count: Int, of lease: SegmentLease) async throws -> Int {
        guard !self.gate.isOpen else { return count }
        let length = min(count, self.gate.pieceLength(self.download, host: self.host))
        lease.beginHolding(now: self.gate.now)
        defer { lease.endHolding(now: self.gate.now) }
        try await self.gate.pass(length, for: self.download, host: self.host)
        return length
    }
}
