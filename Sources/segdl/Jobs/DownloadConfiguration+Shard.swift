import SegmentedDownload
import SegmentedDownloadCore

extension DownloadConfiguration {
    /// Makes this the configuration of one task of a job: what is for all tasks together is divided among them.
    ///
    /// - Parameter dividesConnections: Whether the connections to one server are for all tasks together.
    mutating func divide(for shard: Shard, dividesConnections: Bool) {
        self.sharesRefusals = true
        self.limits.tasks = shard.count
        self.limits.bytesPerSecond = self.limits.bytesPerSecond.map { shard.limit(of: $0) }
        if dividesConnections {
            self.limits.connectionsPerHost = Int(shard.limit(of: Int64(self.limits.connectionsPerHost)))
        }
    }
}
