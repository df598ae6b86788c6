/// What was last observed of a connection.
struct LeaseMeasurements: Hashable, Sendable {
    /// The next byte to write.
    var position: Int64
    /// Bytes received from the network.
    var bytesReceived: Int64 = 0
    /// When its response began. Absent for the connection of the probe.
    var headAt: Duration?
    var progressAt: Duration
    /// When it was last seen waiting for a rate limit.
    var heldAt: Duration?
    var meter: ThroughputMeter
    var speedWindow: SpeedWindow

    init(position: Int64, now: Duration) {
        self.position = position
        self.progressAt = now
        self.meter = ThroughputMeter(start: now, count: position)
        self.speedWindow = SpeedWindow(at: now, bytes: 0)
    }

    /// Measures rates and stalls from now on.
    mutating func beginBody(now: Duration) {
        self.progressAt = now
        self.meter = ThroughputMeter(start: now, count: self.position)
        self.speedWindow = SpeedWindow(at: now, bytes: self.bytesReceived)
    }

    /// Records an observation. Returns the number of bytes received since the last one.
    mutating func observe(_ seen: LeaseObservation, writesFrom: Int64, now: Duration) -> Int64 {
        let received = seen.bytesReceived - self.bytesReceived
        if seen.position > self.position || seen.isWriting || seen.isHeld || received > 0 { self.progressAt = now }
        if seen.isHeld { self.heldAt = now }
        self.bytesReceived = seen.bytesReceived
        self.position = max(self.position, seen.position)
        // Time spent waiting for a rate limit does not count against the connection's speed.
        if !seen.isHeld { self.meter.record(writesFrom + seen.bytesReceived, at: now - seen.held) }
        if seen.isHeld || seen.isWriting { self.speedWindow = SpeedWindow(at: now, bytes: seen.bytesReceived) }
        return received
    }
}
