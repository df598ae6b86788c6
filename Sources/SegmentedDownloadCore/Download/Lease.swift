/// The state of one connection that fetches a segment or a sample.
@dynamicMemberLookup
struct Lease: Hashable, Sendable {
    enum Phase: Hashable {
        /// Requested; the response head has not arrived. Becomes `receiving` or `ending`.
        case requested
        /// The body is being received. Becomes `ending`.
        case receiving
        /// Told to stop, or revoked. Its end will be reported.
        case ending
    }

    /// The reason why segdl closed the connection.
    enum Revocation: Hashable {
        case stalled, tooSlow, stopping
        /// No complete response head within this time.
        case headTooSlow(Duration)
        /// No response, although requests made no earlier were answered. The origin is not at fault.
        case silent
        /// Another connection fetches the rest of its segment sooner.
        case outrun
        /// Another download gets the connection, or fewer are allowed.
        case yielding
    }

    let order: FetchOrder
    let startedAt: Duration
    /// The bytes of the file that had arrived from its source when it was requested.
    let bytesBefore: Int64
    /// Whether its source had another connection when it was requested, so that a refusal may concern their number.
    let isAdditional: Bool
    /// The first byte it writes: that of its order, or the offset at which it took over from another lease.
    var writesFrom: Int64
    var phase: Phase = .requested
    var revocation: Revocation?
    /// When its connection is closed at the latest, if another download should have it. It fetches nothing beyond its
    /// segment.
    var yieldsBy: Duration?
    /// The offset in the resource at which its response's body ends.
    var responseEnd: Int64 = 0
    var wasAccepted = false
    var measured: LeaseMeasurements

    init(order: FetchOrder, now: Duration, bytesBefore: Int64 = 0, isAdditional: Bool = false) {
        self.order = order
        self.startedAt = now
        self.bytesBefore = bytesBefore
        self.isAdditional = isAdditional
        self.writesFrom = order.writesFrom
        self.measured = LeaseMeasurements(position: order.writesFrom, now: now)
    }

    subscript<Value>(dynamicMember path: WritableKeyPath<LeaseMeasurements, Value>) -> Value {
        get { self.measured[keyPath: path] }
        set { self.measured[keyPath: path] = newValue }
    }

    var id: LeaseID { self.order.lease }
    var hasProgressed: Bool { self.position > self.writesFrom }
    /// Whether all bytes of its response have arrived and are written, so that it is about to end.
    var hasLastByte: Bool { self.phase == .receiving && !self.order.isSample && self.position >= self.responseEnd }
    /// How long its response head was waited for in vain; nil if its connection was not closed for that.
    var headPatience: Duration? { if case .headTooSlow(let patience)? = self.revocation { patience } else { nil } }
    /// Whether it has ended without an answer that could be used, and not because it was no longer needed.
    var wasRefused: Bool {
        guard !self.wasAccepted else { return false }
        return switch self.revocation {
        case .stalled, .headTooSlow, .silent, nil: true
        case .tooSlow, .stopping, .outrun, .yielding: false
        }
    }
    /// Whether it is a hedge that has not taken over.
    var isWaitingHedge: Bool { self.order.hedged != nil && !self.wasAccepted }

    /// Begins to receive the body that it writes. Rates and stalls are measured from now on.
    mutating func beginBody(now: Duration) {
        self.phase = .receiving
        self.measured.beginBody(now: now)
    }

    /// Records what was seen of it. Returns the number of bytes that it received since it was last seen.
    mutating func observe(_ seen: LeaseObservation, now: Duration) -> Int64 {
        self.measured.observe(seen, writesFrom: self.writesFrom, now: now)
    }
}

/// How a fetch ended.
package enum LeaseEnd: Hashable, Sendable {
    /// The body ended as announced.
    case finished
    /// It was told to stop and closed the connection before the end of the body.
    case stopped
    /// The network or the origin failed.
    case failed(DownloadError)
    /// segdl closed the connection.
    case revoked
    /// The local storage failed.
    case storageFailed(DownloadError)
    /// The body does not match its own response, such as its `Content-Digest`. None of it is claimed.
    case corrupt(DownloadError)
    /// A compared byte differs from the one on disk; the source sent this one.
    case differs(at: Int64, byte: UInt8)
}

/// The progress of a running lease, sampled by the engine just before an event.
package struct LeaseObservation: Hashable, Sendable {
    package let lease: LeaseID
    /// The next byte to write.
    package let position: Int64
    /// Bytes received from the network, including compared ones.
    package let bytesReceived: Int64
    /// Whether it is waiting for the local disk, which does not count as a stall.
    package let isWriting: Bool
    /// Whether it is waiting for a rate limit.
    package let isHeld: Bool
    /// How long it has waited for rate limits, without the present wait.
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
