import SegmentedDownloadCore

/// What a task of a job last reported about itself.
package struct ShardStatus: Codable, Hashable, Sendable {
    package enum State: String, Codable, Sendable {
        /// Also after a kill, until another run of the task reports.
        case running
        /// All of the task's entries are finished.
        case finished
        /// Some failed.
        case failed
        /// A signal ended the run.
        case stopped
    }

    package var version = 1
    package var shard: Int
    package var shards: Int
    package var state: State = .running
    /// Identifies the run, and names its files.
    package var run: String
    package var host: String
    package var process: Int32
    /// Seconds since 1970.
    package var started: Double
    package var updated: Double
    /// The entries of the list, of all tasks, that were read so far.
    package var entriesRead: Int64 = 0
    /// The task's entries that earlier runs finished.
    package var skipped: Int64 = 0
    package var completed: Int64 = 0
    package var failed: Int64 = 0
    /// Received in this run.
    package var bytesFetched: Int64 = 0
    /// For one file on several machines: the length of the task's range, and how much of it is there.
    package var bytesTotal: Int64?
    package var bytesDone: Int64?

    package init(_ shard: Shard, run: String, host: String, process: Int32, started: Double) {
        (self.shard, self.shards) = (shard.number, shard.count)
        (self.run, self.host, self.process) = (run, host, process)
        (self.started, self.updated) = (started, started)
    }

    enum CodingKeys: String, CodingKey {
        case version = "v"
        case shard, shards, state, run, host
        case process = "pid"
        case started, updated
        case entriesRead = "entries_read"
        case skipped, completed, failed
        case bytesFetched = "bytes_fetched"
        case bytesTotal = "bytes_total"
        case bytesDone = "bytes_done"
    }
}
