/// Detects that bytes have arrived more slowly than a given speed for a given time.
///
/// A window ends as soon as it has the bytes that the speed demands, and the next one begins. One that lasts the whole time
/// without them was too slow.
struct SpeedWindow: Hashable, Sendable {
    /// 5 s, many times the interval of the checks: after a longer one the machine was suspended, which is not slowness.
    private static let intervalMax: Duration = .seconds(5)

    private var beganAt: Duration
    private var checkedAt: Duration
    private var bytesBefore: Int64

    init(at now: Duration, bytes: Int64) {
        self.beganAt = now
        self.checkedAt = now
        self.bytesBefore = bytes
    }

    /// Whether the speed was too low for the whole time.
    ///
    /// - Parameters:
    ///   - bytes: All bytes received so far.
    ///   - minimum: The speed in bytes per second.
    mutating func isTooSlow(bytes: Int64, minimum: Int64, time: Duration, now: Duration) -> Bool {
        let isMet = Double(bytes - self.bytesBefore) >= Double(minimum) * time.inSeconds
        if isMet || now - self.checkedAt > Self.intervalMax { self = SpeedWindow(at: now, bytes: bytes) }
        self.checkedAt = now
        return now - self.beganAt >= time
    }
}
