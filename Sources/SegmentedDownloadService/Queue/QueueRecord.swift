import SegmentedDownload

/// What the database stores of an entry: what is wanted, never what is on disk.
struct QueueRecord: Hashable, Sendable {
    /// What the user wants of an entry.
    enum Wish: Hashable, Sendable {
        /// Run when its turn comes.
        case run
        /// Wait until it is resumed.
        case pause
        /// It failed with this error. Wait until it is tried again.
        case retryLater(DownloadError)
        /// Leave the queue.
        case cancel(keepingPartial: Bool)
    }

    let id: QueueEntry.ID
    /// The place in the queue. Entries with a lower one come first; no two are equal.
    var position: Int64
    var wish: Wish
    /// The number of runs that failed.
    var attempts = 0
    /// When it was added, in seconds since 1970.
    let added: Int64
    var request: RecordedRequest
    let secrets: RequestSecrets
}

/// A change of the database. All changes of one transaction are durable, or none.
enum QueueChange: Hashable, Sendable {
    case insert(QueueRecord)
    case position(QueueEntry.ID, Int64)
    case wish(QueueEntry.ID, QueueRecord.Wish, attempts: Int)
    case request(QueueEntry.ID, RecordedRequest)
    /// The entry and its secrets leave the queue, and the history gets a row.
    case finish(QueueEntry.ID, HistoryEntry)
}
