/// Something that happened to a download, for its observers.
public enum DownloadEvent: Hashable, Sendable {
    case started(Started)
    /// At most five a second.
    case progress(DownloadProgress)
    case segment(SegmentChange)
    /// An attempt failed; another follows after the delay.
    case retrying(DownloadError, attempt: Int, delay: Duration)
    /// So many bytes would survive a power cut.
    case checkpoint(bytesDurable: Int64)
    /// Something worth knowing that is no failure.
    case note(String)
    /// It stands elsewhere than before. What it ended with, if it did, is the next event.
    case state(DownloadState)
    /// Stopped for now; everything fetched is durable.
    case paused(DownloadProgress)
    case completed(DownloadResult)
    case failed(DownloadError, DownloadProgress)
    case cancelled

    public struct Started: Hashable, Sendable {
        /// The URL, safe to show.
        public var url: String
        public var path: String
        /// Absent if the origin does not say.
        public var bytesTotal: Int64?
        /// Bytes kept from before.
        public var resumedFrom: Int64
        public var isSegmented: Bool
        /// What identifies this version of the resource, safe to show; absent if nothing does.
        public var validator: String?
    }

    public struct SegmentChange: Hashable, Sendable {
        public enum State: String, Hashable, Sendable {
            case opened, split, done, retry
        }

        public var segment: Int
        /// Offsets in bytes; the end is past the last one, absent if unknown.
        public var start: Int64
        public var end: Int64?
        public var state: State
        /// The source it is fetched from, safe to show; absent where none is concerned.
        public var source: String?
    }

    /// Whether the sequence of events ends with this one, until the download is resumed.
    public var isTerminal: Bool {
        switch self {
        case .paused, .completed, .failed, .cancelled: true
        case .started, .progress, .segment, .retrying, .checkpoint, .note, .state: false
        }
    }
}

extension DownloadEvent {
    /// Whether it is the last there will ever be.
    var isOver: Bool {
        switch self {
        case .completed, .cancelled: true
        case .started, .progress, .segment, .retrying, .checkpoint, .note, .state, .paused, .failed: false
        }
    }
}

/// How far a download has come.
public struct DownloadProgress: Hashable, Sendable {
    public var bytesDone: Int64 = 0
    /// Absent while unknown; never a number that stands for it.
    public var bytesTotal: Int64?
    /// Bytes per second over the last moments, absent while too little is known.
    public var rate: Double?
    /// Connections in use.
    public var connections: Int = 0

    public init() {}

    /// From 0 to 1, absent while the total is unknown.
    public var fraction: Double? {
        self.bytesTotal.map { $0 == 0 ? 1 : Double(self.bytesDone) / Double($0) }
    }

    /// The time left at the present rate, absent while unknown.
    public var timeLeft: Duration? {
        guard let total = self.bytesTotal, let rate = self.rate, rate >= 1 else { return nil }
        return .seconds(Double(max(total - self.bytesDone, 0)) / rate)
    }
}

/// A file in place.
public struct DownloadResult: Hashable, Sendable {
    /// What the file was held against.
    public enum Verification: String, Hashable, Sendable {
        /// A digest the user gave.
        case digest
        /// The same strong entity tag on every response.
        case etag
        /// The same Last-Modified on every response.
        case lastModified = "last_modified"
        /// Nothing but the length, if even that.
        case none
    }

    public var path: String
    /// The file's length.
    public var bytes: Int64
    /// Body bytes received in this run.
    public var bytesFetched: Int64
    /// Requests made in this run.
    public var requests: Int
    /// The most connections in use at once.
    public var connectionsPeak: Int
    public var duration: Duration
    /// Eight hexadecimal digits, absent if the destination was there already.
    public var crc32: String?
    public var digests: [ExpectedDigest]
    public var verifiedBy: Verification
    /// Whether the destination was there already, and nothing was fetched.
    public var wasAlreadyComplete: Bool
}

/// Where a download stands.
public enum DownloadState: String, Hashable, Sendable, CaseIterable {
    /// Waits for its turn.
    case queued
    /// Looks at the disk and asks the origin what there is.
    case probing
    /// Bytes are being fetched.
    case running
    /// Every connection has failed, and the next attempt is not due yet: ``DownloadEvent/retrying(_:attempt:delay:)`` says
    /// when it is.
    case retrying
    /// All bytes are there and are being checked.
    case verifying
    /// Stopped for now.
    case paused
    case completed
    case failed
    case cancelled

    /// Whether it rests: nothing happens until someone asks for it, if it ever does.
    public var isAtRest: Bool {
        switch self {
        case .paused, .completed, .failed, .cancelled: true
        case .queued, .probing, .running, .retrying, .verifying: false
        }
    }

    /// Whether it is over: it cannot be resumed, and adding its request again begins a new download.
    public var isOver: Bool {
        switch self {
        case .completed, .cancelled: true
        case .queued, .probing, .running, .retrying, .verifying, .paused, .failed: false
        }
    }
}
