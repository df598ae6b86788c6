import Testing

@testable import SegmentedDownloadCore

/// Fetching as a value, with connections as a test wants them.
extension Fetching {
    /// - Parameter pieces: into how many equal segments the file is cut, where no gaps are given.
    static func sample(
        length: Int64 = 64 << 20, missing: [Range<Int64>]? = nil, pieces: Int64 = 1, connections: Int = 4,
        hosts: [String] = ["one"],
        written: SourceTable.Written = .init(), isSegmented: Bool = true, overlap: Int64 = 0,
        window: ReadingWindow? = nil, seed: UInt64 = 1, _ change: (inout DownloadSettings) -> Void = { _ in }
    ) -> Fetching {
        var settings = DownloadSettings()
        settings.segments = .exactly(connections)
        settings.hosts = hosts
        change(&settings)
        var sources = SourceTable(hosts: hosts)
        sources.define(.tagged("\"a\"", length: length), by: .first, written)
        let piece: Int64 = length / pieces
        let starts: [Int64] = (0..<pieces).map { $0 * piece }
        let whole: [Range<Int64>] = starts.map { start in start..<(start + piece) }
        let plan =
            missing == nil && pieces == 1
            ? SegmentPlan(completeLength: length) : SegmentPlan(completeLength: length, missing: missing ?? whole)
        return Fetching(
            DownloadContext(settings: settings, sources: sources, seed: seed), plan: plan, isSegmented: isSegmented,
            overlap: overlap, window: window, now: .zero)
    }

    /// Asks for the next piece, from any host.
    mutating func ask(at now: Duration = .zero) -> FetchOrder? { self.nextFetch(now: now) { _ in true } }

    /// The next piece, which must be to be had.
    mutating func asked(at now: Duration = .zero) throws -> FetchOrder {
        let order = self.ask(at: now)
        return try #require(order)
    }

    /// The connection that is given up of some, which one must be.
    mutating func yielded(
        among held: [LeaseID], now: Duration
    ) throws -> (lease: LeaseID, actions: [DownloadAction]) {
        let yielding = self.yield(among: held, now: now)
        return try #require(yielding)
    }

    /// Asks for pieces until none is to be had, and has them all answered with what was asked for.
    @discardableResult
    mutating func openAll(at now: Duration = .zero) -> [LeaseID] {
        var opened: [LeaseID] = []
        while let order = self.ask(at: now) {
            opened.append(order.lease)
            self.accept(order.lease, at: now)
        }
        return opened
    }

    /// The answer to a request has begun, as it was asked for.
    mutating func accept(_ id: LeaseID, at now: Duration) {
        guard let order = self.lease(id)?.order, let end = order.request.upperBound else { return }
        let range = ByteRange(order.request.lowerBound..<end)
        _ = self.responded(id, .partial(range, .tagged("\"a\"", length: self.plan.completeLength)), now: now)
    }

    /// A connection has written up to an offset, all of it from the network.
    mutating func bring(_ id: LeaseID, to position: Int64, at now: Duration) {
        guard let lease = self.lease(id) else { return }
        self.observe(
            [
                LeaseObservation(
                    lease: id, position: position, bytesReceived: position - lease.order.request.lowerBound,
                    isWriting: false)
            ], now: now)
    }
}
