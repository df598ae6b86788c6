import SegmentedDownloadCore

/// What the downloads of a group may use together.
///
/// All of it may be changed while downloads run, see ``DownloadGroup/update(_:)``.
public struct DownloadLimits: Hashable, Sendable {
    /// Connections open at once, over all hosts; at least 1.
    public var connections = 64
    /// Connections open at once to one host; at least 1. Browsers stop at 6, download managers at 16.
    public var connectionsPerHost = 16
    /// Files fetched at once, at least 1; the rest waits. No more are begun than there are connections for.
    public var downloads = 5
    /// Bytes per second, all downloads together, at least 1; absent for no limit.
    ///
    /// Bytes of bodies count, those of heads and of encryption do not. Over any five seconds the limit is exceeded by 3 % at
    /// most. While more wants to come than may, downloads share it in proportion to their priority.
    public var bytesPerSecond: Int64?
    /// Bytes per second from one host, at least 1; absent for no limit. Bytes of bodies count.
    public var bytesPerSecondPerHost: Int64?

    public init() {}

    var group: GroupStateMachine.Limits {
        var limits = GroupStateMachine.Limits()
        limits.connections = max(self.connections, 1)
        limits.connectionsPerHost = max(self.connectionsPerHost, 1)
        limits.downloads = max(self.downloads, 1)
        return limits
    }

    var rates: RateBudget.Limits {
        RateBudget.Limits(total: self.bytesPerSecond, perHost: self.bytesPerSecondPerHost)
    }

    /// 16 KiB: a smaller receive buffer costs more calls than it smooths.
    private static let receiveLengthMin = 16 << 10

    /// How much a connection may take from the network at once, in bytes: no more than a piece of what is let through.
    var receiveLengthMax: Int {
        let rates = [self.bytesPerSecond, self.bytesPerSecondPerHost].compactMap { $0.map { max($0, 1) } }
        guard let rate = rates.min() else { return ReceiveBuffers.lengthMax }
        return min(max(RateBudget.pieceLength(rate), Self.receiveLengthMin), ReceiveBuffers.lengthMax)
    }
}
