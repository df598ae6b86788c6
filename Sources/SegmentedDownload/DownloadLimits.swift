import SegmentedDownloadCore

/// What the downloads of a group may use together.
public struct DownloadLimits: Hashable, Sendable {
    /// Connections open at once, over all hosts.
    public var connections = 64
    /// Connections open at once to one host. Browsers stop at 6, download managers at 16.
    public var connectionsPerHost = 16
    /// Files fetched at once; the rest waits.
    public var downloads = 5
    /// Bytes per second, all downloads together; absent for no limit.
    public var bytesPerSecond: Int64?
    /// Bytes per second from one host; absent for no limit.
    public var bytesPerSecondPerHost: Int64?

    public init() {}

    var group: GroupStateMachine.Limits {
        var limits = GroupStateMachine.Limits()
        limits.connections = max(self.connections, 1)
        limits.connectionsPerHost = max(self.connectionsPerHost, 1)
        limits.downloads = max(self.downloads, 1)
        return limits
    }
}
