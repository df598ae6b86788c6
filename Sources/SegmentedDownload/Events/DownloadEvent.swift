/// Something that happened to a download, for its observers.
public enum DownloadEvent: Hashable, Sendable {
    /// The origin has answered, and the first byte may be written. Comes again after a pause or a failure.
    case started(Started)
    /// At most five a second.
    case progress(DownloadProgress)
    /// A connection's piece of the file begins, is cut, is whole or is to be fetched again.
    case segment(SegmentChange)
    /// An attempt failed; another follows after the delay. The attempt is its number in a row without a byte of progress, from 1.
    case retrying(DownloadError, attempt: Int, delay: Duration)
    /// So many bytes would survive a power cut.
    case checkpoint(bytesDurable: Int64)
    /// Something worth knowing that is no failure.
    case note(String)
    /// It stands elsewhere than before. What it ended with, if it did, is the next event.
    case state(DownloadState)
    /// Stopped for now; everything fetched is durable.
    case paused(DownloadProgress)
    /// The file is in place. Nothing comes after it.
    case completed(DownloadResult)
    /// It cannot go on, for this reason and with so much done; it may be resumed. Comes once, however many sources there were.
    case failed(DownloadError, DownloadProgress)
    /// It was stopped for good, by its user or with its group: no failure. Nothing comes after it.
    case cancelled

    /// What is known once the origin has answered.
    public struct Started: Hashable, Sendable {
        /// The URL, safe to show.
        public var url: String
        /// The destination.
        public var path: String
        /// Absent if the origin does not say.
        public var bytesTotal: Int64?
        /// Bytes kept from before.
        public var resumedFrom: Int64
        /// Whether more than one connection may fetch it: not where the origin does no ranges or does not say the length.
        public var isSegmented: Bool
        /// What identifies this version of the resource, safe to show; absent if nothing does.
        public var validator: String?
    }

    /// What happened to a segment.
    public struct SegmentChange: Hashable, Sendable {
        /// A connection has begun with it; it now ends where another begins; all of it is there; its connection broke.
        public enum State: String, Hashable, Sendable {
            case opened, split, done, retry
        }

        /// Its number within the download.
        public var segment: Int
        /// Offsets in bytes; the end is past the last one, absent if unknown.
        public var start: Int64
        public var end: Int64?
        /// What happened.
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
    /// Bytes of the file that are there, those of earlier runs included.
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
        /// Parts of it were kept from another resource or without a validator, or came from a mirror: bytes at their ends and at
        /// random places agreed with those of the origin.
        case comparison
        /// Nothing but the length, if even that.
        case none
    }

    /// Where it is.
    public var path: String
    /// The file's length.
    public var bytes: Int64
    /// Body bytes received in this run.
    public var bytesFetched: Int64
    /// Requests made in this run.
    public var requests: Int
    /// The most connections in use at once.
    public var connectionsPeak: Int
    /// From the first look at the destination in this run, or since it was resumed, until the file was in place.
    public var duration: Duration
    /// Eight hexadecimal digits, absent if the destination was there already.
    public var crc32: String?
    /// Those it was held against, and those that were to be computed.
    public var digests: [ExpectedDigest]
    /// What the file was held against.
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
    /// The file is in place.
    case completed
    /// It cannot go on; it may be resumed.
    case failed
    /// Stopped for good.
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
