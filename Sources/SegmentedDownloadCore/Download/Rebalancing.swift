/// Work that moves from one connection to another.
struct Rebalancing: Hashable, Sendable {
    /// The work that a connection is asked to give up, until its last byte is known.
    enum Narrowing: Hashable {
        /// Free connections get the work, in this many segments.
        case split(into: Int)
        /// The hedge takes it over.
        case takeover(by: LeaseID)
    }

    /// Absent if no connection is asked.
    var narrowing: Narrowing?
    var stealing: WorkStealing
    var hedging = Hedging()
}
