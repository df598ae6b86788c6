@testable import SegmentedDownloadCore

/// A connection as a value, as a test wants it.
extension Lease {
    /// A connection that receives, and has received at a rate from its request until `now`.
    static func sample(_ id: Int, startedAt: Duration = .zero, rate: Double? = nil, now: Duration = .zero) -> Lease {
        let order = FetchOrder(
            lease: LeaseID(id), segment: Segment.ID(id), request: RangeRequest(), writesFrom: 0, limit: .max)
        var lease = Lease(order: order, now: startedAt)
        lease.phase = .receiving
        if let rate { lease.meter.record(Int64(rate * (now - startedAt).inSeconds), at: now) }
        return lease
    }
}
