package import SegmentedDownload

/// What the database stores of an entry: what is wanted, never what is on disk.
package struct QueueRecord: Hashable, Sendable {
    /// What becomes of an entry.
    package enum State: Hashable, Sendable {
        /// It runs when its turn comes. Becomes any other.
        case queued
        /// It waits until it is resumed. Becomes `queued` or `cancelling`.
        case paused
        /// It failed with this error, and waits until it is resumed. Becomes `queued` or `cancelling`.
        case failed(DownloadError)
        /// It leaves the queue. Becomes `failed` if its partial file cannot be deleted.
        case cancelling(keepingPartial: Bool)
    }

    package let id: QueueEntry.ID
    /// The place in the queue. Entries with a lower one come first; no two are equal.
    package var position: Int64
    package var state: State
    /// The number of runs that failed.
    package var attempts = 0
    /// When it was added, in seconds since 1970.
    package let added: Int64
    /// Whether it was in the download group, so that it may have files on disk.
    package var hasBegun = false
    package var request: QueuedRequest
}

/// A change of the database. All changes of one transaction are durable, or none.
package enum QueueChange: Hashable, Sendable {
    case insert(QueueRecord)
    case position(QueueEntry.ID, Int64)
    case state(QueueEntry.ID, QueueRecord.State, attempts: Int)
    /// It is about to be in the download group, or its file has a name.
    case begun(QueueEntry.ID, QueuedRequest)
    /// The request was changed.
    case request(QueueEntry.ID, QueuedRequest)
    /// The entry and its secrets leave the queue, and the history gets a row.
    case finish(QueueEntry.ID, HistoryEntry)

    package var id: QueueEntry.ID {
        switch self {
        case .insert(let record): record.id
        case .position(let id, _), .state(let id, _, _), .begun(let id, _), .request(let id, _), .finish(let id, _): id
        }
    }
}
