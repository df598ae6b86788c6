import SegmentedDownloadCore

/// What the downloads of a group may use together.
///
/// All of it may be changed while downloads run, see ``DownloadGroup/update(_:)``.
public struct DownloadLimits: Hashable, Sendable {
    /// Connections open at once, over all hosts; at least 1. Fewer where the process may not open so many descriptors: with
    /// those of the files, `RLIMIT_NOFILE` bounds them.
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

    /// Bytes of responses in memory at once, all downloads together; absent for no limit.
    ///
    /// It bounds what has been read from sockets and is not written to files yet: for each connection a piece being written and one
    /// that waits for it, and where there is encryption what the second one is decrypted from. Every connection there may be has an
    /// equal share of it, at least 128 KiB: where `connections` is more than there are shares, fewer are opened, and less than
    /// 128 KiB counts as that. The smaller the shares are, the more calls a byte costs.
    ///
    /// Not counted are what does not grow with speed, such as heads, manifests and the program itself, and what the system's own socket
    /// buffers hold; where a server ends a response by closing its connection, the rest of it is taken from these at once. A limit that
    /// is lowered holds for what is read from then on; a stream that cannot be gone on with is left to end by itself, as a share too
    /// many.
    public var memory: Int64?

    public init() {}

    var group: GroupStateMachine.Limits {
        var limits = GroupStateMachine.Limits()
        limits.connections = self.connectionsAllowed
        limits.connectionsPerHost = max(self.connectionsPerHost, 1)
        limits.downloads = min(
            max(self.downloads, 1), DescriptorLimit.files(beside: limits.connections))
        return limits
    }

    /// 128 KiB: three receive buffers of the shortest length and what records of TLS add to them, rounded up to a power of two.
    private static let shareMin: Int64 = 128 << 10

    /// As many connections as there may be, and as there are descriptors for and shares of the memory.
    private var connectionsAllowed: Int {
        let connections = min(max(self.connections, 1), DescriptorLimit.connections(files: max(self.downloads, 1)))
        guard let memory else { return connections }
        return min(connections, Int(max(memory / Self.shareMin, 1)))
    }

    var rates: RateBudget.Limits {
        RateBudget.Limits(total: self.bytesPerSecond, perHost: self.bytesPerSecondPerHost)
    }

    var receive: ReceiveLimits {
        let rates = [self.bytesPerSecond, self.bytesPerSecondPerHost].compactMap { $0.map { max($0, 1) } }
        return ReceiveLimits(
            memory: self.memory.map { Int(max($0 / Int64(self.connectionsAllowed), Self.shareMin)) },
            pieceLength: rates.min().map { RateBudget.pieceLength($0) })
    }
}
