/// What the scheduler knows of one connection at work on a segment.
struct Lease: Hashable, Sendable {
    enum Phase: Hashable {
        /// Asked; the head has not come. Becomes `receiving` or `ending`.
        case requested
        /// The body is being written. Becomes `ending`.
        case receiving
        /// Told to stop or revoked; its end will be reported.
        case ending
    }

    /// Why we closed the connection.
    enum Revocation: Hashable {
        case stalled, headTooSlow, tooSlow, stopping
        /// Nothing came on it, while others have long had their answers: what is at the other end is not to blame.
        case silent
        /// Another connection brings the rest of its segment, and sooner.
        case outrun
        /// Another download is to have the connection, or there may be fewer than there were.
        case yielding
    }

    let order: FetchOrder
    let startedAt: Duration
    /// When its response began, for one that was asked for after the first.
    var headAt: Duration?
    /// The first byte it writes: that of its order, or where it took over from another.
    var writesFrom: Int64
    var phase: Phase = .requested
    var revocation: Revocation?
    /// Its connection is to be given up: it takes nothing beyond its segment, and is closed at this time at the latest.
    var yieldsBy: Duration?
    /// The next byte it will write, as last observed.
    var position: Int64
    /// Where its response's body ends.
    var responseEnd: Int64 = 0
    var wasAccepted = false
    /// Bytes taken from the network, as last observed.
    var bytesReceived: Int64 = 0
    var progressAt: Duration
    /// When it last waited for a rate limit of ours.
    var heldAt: Duration?
    var meter: ThroughputMeter

    init(order: FetchOrder, now: Duration) {
        self.order = order
        self.startedAt = now
        self.writesFrom = order.writesFrom
        self.position = order.writesFrom
        self.progressAt = now
        self.meter = ThroughputMeter(start: now, count: order.writesFrom)
    }

    var id: LeaseID { self.order.lease }
    var hasProgressed: Bool { self.position > self.writesFrom }
}

/// How a lease's work ended, as its fetch reports it.
package enum LeaseEnd: Hashable, Sendable {
    /// Its body ended as announced.
    case finished
    /// It was told to stop, and its connection closed before the body's end.
    case stopped
    /// The network or the origin failed it.
    case failed(Failure)
    /// We closed its connection.
    case revoked
    /// Our own storage failed it.
    case storageFailed(Failure)
    /// What came is not what its own response says it is; nothing of it is claimed.
    case corrupt(Failure)
    /// A byte that was compared differs from the one on disk.
    case differs(at: Int64)
}

/// What the engine saw of a running lease just before an event.
package struct LeaseObservation: Hashable, Sendable {
    package let lease: LeaseID
    /// The next byte it will write.
    package let position: Int64
    /// Bytes taken from the network so far, compared ones included.
    package let bytesReceived: Int64
    /// Whether it waits for our own disk, which is not the network's fault.
    package let isWriting: Bool
    /// Whether it is held back by a rate limit of ours.
    package let isHeld: Bool
    /// How long it was held back in all, the present time not counted.
    package let held: Duration

    package init(
        lease: LeaseID, position: Int64, bytesReceived: Int64, isWriting: Bool, isHeld: Bool = false,
        held: Duration = .zero
    ) {
        self.lease = lease
        self.position = position
        self.bytesReceived = bytesReceived
        self.isWriting = isWriting
        self.isHeld = isHeld
        self.held = held
    }
}
