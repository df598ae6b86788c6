import SegmentedDownloadCore

/// The limits that the downloads of a group share.
///
/// They may be changed while downloads run; see ``DownloadGroup/update(_:)``.
public struct DownloadLimits: Hashable, Sendable {
    /// The maximum number of open connections to all hosts; at least 1.
    ///
    /// `RLIMIT_NOFILE` may allow fewer, because files need descriptors too.
    public var connections = 64
    /// The maximum number of open connections to one host; at least 1. Browsers use 6, download managers 16.
    public var connectionsPerHost = 16
    /// The maximum number of files fetched at the same time, of short ones ``shortDownloads``; at least 1. Not more start
    /// than there are connections. Default 5.
    ///
    /// Streams (``DownloadGroup/stream(_:window:)``) count too: one whose consumer is slow holds its place until it ends. Set a
    /// higher limit in a server that passes files on, or use a group or client of its own for streams.
    ///
    /// A change also sets ``shortDownloads``, so that the number is exact.
    public var downloads = 5 {
        didSet { self.shortDownloads = self.downloads }
    }
    /// The maximum number of files fetched at the same time while fewer than ``downloads`` of them are longer than 1
    /// MiB. Default 16, as many as there may be connections to one host.
    ///
    /// Short files take round trips rather than bandwidth: five at once leave most of a distant server's bandwidth
    /// unused, and delay longer files behind them. Before a file's first response its length is unknown, and the file
    /// is expected to be like the last one whose length a response showed. So when long files follow short ones, more
    /// than ``downloads`` long ones may be fetched for a while. Not more start than the host may have connections. A
    /// lower value than ``downloads`` has no effect, nor has any in a job of several tasks. Set it after ``downloads``.
    public var shortDownloads = 16
    /// The maximum rate of all downloads together, in bytes per second; at least 1, `nil` for no limit.
    ///
    /// Only bytes of message bodies count, not heads or TLS overhead. Over any five seconds the limit is exceeded by at
    /// most 3 %. Downloads share a limited rate in proportion to their priority.
    public var bytesPerSecond: Int64?
    /// The maximum rate from one host, in bytes of message bodies per second; at least 1, `nil` for no limit.
    public var bytesPerSecondPerHost: Int64?

    /// The maximum number of response bytes held in memory by all downloads together; `nil` for no limit.
    ///
    /// The limit covers bytes that have been read from sockets and are not yet written to files: for each connection
    /// the chunk being written, the next chunk, and with TLS the records that the next chunk is decrypted from. Every
    /// allowed connection has an equal share of at least 128 KiB. If the limit is too small for `connections` shares,
    /// fewer connections are opened; a limit below 128 KiB counts as 128 KiB. Smaller shares need more system calls per
    /// byte.
    ///
    /// The limit does not cover memory that is independent of speed, such as heads, manifests and the program itself,
    /// nor the kernel's socket buffers. When a server ends a response by closing its connection, the rest of the
    /// response is read from the socket buffer at once. A lowered limit applies to later reads. A stream that cannot be
    /// resumed keeps its connection until it ends, even if that is one share too many.
    public var memory: Int64?

    /// The number of tasks of a job that use the same servers, of which this process is one; 1 without a job. Later
    /// changes have no effect.
    package var tasks = 1

    public init() {}

    var group: GroupStateMachine.Limits {
        var limits = GroupStateMachine.Limits()
        limits.connections = self.connectionsAllowed
        limits.connectionsPerHost = max(self.connectionsPerHost, 1)
        limits.tasks = max(self.tasks, 1)
        let files = DescriptorLimit.files(beside: limits.connections)
        limits.downloads = min(max(self.downloads, 1), files)
        limits.shortDownloads = limits.tasks > 1 ? limits.downloads : min(self.downloadsMax, files)
        return limits
    }

    /// The maximum number of files fetched at the same time, of any length.
    package var downloadsMax: Int { max(self.downloads, self.shortDownloads, 1) }

    /// 128 KiB: three receive buffers of the shortest length plus TLS record overhead, rounded up to a power of two.
    private static let shareMin: Int64 = 128 << 10

    /// The number of connections that the limits, the process's descriptors and the memory shares allow.
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
            chunkLength: rates.min().map { RateBudget.chunkLength($0) })
    }
}
