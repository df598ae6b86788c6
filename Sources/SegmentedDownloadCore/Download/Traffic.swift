/// The measurements of a download's connections, and the number of connections that follows from them.
struct Traffic: Hashable, Sendable {
    /// An origin that serves any connection sends bytes at least this often.
    static let serviceInterval: Duration = .seconds(1)

    /// A head may take this many times as long as the slowest one.
    static let silenceFactor = 2.0

    /// Invalid HTTP responses are retried until there were this many in all. A single one may be a middlebox's error.
    static let malformedMax = 3

    var controller: ConcurrencyController
    var path = PathStatistics()
    private(set) var bytesReceived: Int64 = 0
    /// When bytes were first requested.
    let beganAt: Duration
    /// When any connection last received a byte; initially, when bytes were first requested.
    private(set) var servedAt: Duration
    /// How often silent connections were replaced since all requests were last answered.
    private(set) var silences = 0
    private var malformed = 0
    /// When a connection was last cut while it received bytes.
    private var cutAt: Duration?
    private var speedWindow: SpeedWindow

    init(_ controller: ConcurrencyController, now: Duration) {
        self.controller = controller
        self.beganAt = now
        self.servedAt = now
        self.speedWindow = SpeedWindow(at: now, bytes: 0)
    }

    /// Records what a connection received since it was last observed.
    ///
    /// - Parameter isHeld: Whether it waits for a rate limit, so that the origin is not at fault.
    mutating func noteReceived(_ count: Int64, isHeld: Bool = false, now: Duration) {
        if count > 0 || isHeld { self.servedAt = now }
        self.bytesReceived += count
    }

    /// 60 s: servers that ban an address for its number of connections cut these first, and few ban it for longer.
    private static let banMax: Duration = .seconds(60)

    /// Records that a connection was cut while it received bytes.
    mutating func noteCut(now: Duration) { self.cutAt = now }

    /// Whether what the server refuses now may be due to connections that it has cut.
    func mayBeBanned(now: Duration) -> Bool { self.cutAt.map { now - $0 < Self.banMax } ?? false }

    /// How long ago a byte last arrived.
    func waited(now: Duration) -> Duration { now - self.servedAt }

    // MARK: Speed

    /// Begins to measure the speed anew, because nothing could arrive until now, or the local machine was slow.
    mutating func restartSpeed(now: Duration) { self.speedWindow = SpeedWindow(at: now, bytes: self.bytesReceived) }

    /// Whether fewer bytes per second than `minimum` arrived in all for a time.
    mutating func isTooSlow(minimum: Int64, time: Duration, now: Duration) -> Bool {
        self.speedWindow.isTooSlow(bytes: self.bytesReceived, minimum: minimum, time: time, now: now)
    }

    // MARK: Answers

    /// How long a connection may be silent. If their replacements are silent too, the origin is delaying responses, so the
    /// patience doubles each time.
    var silencePatience: Duration {
        max(WorkStealing.replacementPatience, .seconds(Self.silenceFactor * self.path.slowestHead))
            * (1 << min(self.silences, 6))
    }

    mutating func noteSilence() { self.silences += 1 }

    /// Records that all requests were answered.
    mutating func endSilence() { self.silences = 0 }

    /// Counts an invalid HTTP response. Returns whether the next one may be valid.
    mutating func noteMalformed() -> Bool {
        self.malformed += 1
        return self.malformed < Self.malformedMax
    }
}
