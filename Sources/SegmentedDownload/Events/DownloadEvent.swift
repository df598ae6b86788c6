public import SystemPackage

/// An event of a download, for its observers.
public enum DownloadEvent: Hashable, Sendable {
    /// The origin has answered and the plan is known. Occurs again after a pause or a failure.
    case started(Started)
    /// The progress, at most five times a second.
    case progress(DownloadProgress)
    /// A segment was opened, split, completed or put back.
    case segment(SegmentChange)
    /// An attempt failed, and another follows after the delay. The attempt counts consecutive failures without
    /// progress, from 1.
    case retrying(DownloadError, attempt: Int, delay: Duration)
    /// A checkpoint was recorded: so many bytes are durable.
    case checkpoint(bytesDurable: Int64)
    /// A remark that is not an error.
    case note(String)
    /// The download's state changed. If the new state is terminal, the terminal event follows.
    case state(DownloadState)
    /// The download is paused, and everything fetched is durable.
    case paused(DownloadProgress)
    /// The file is in place. No event follows.
    case completed(DownloadResult)
    /// The download failed with this error and progress. It may be resumed. Occurs once, however many sources failed.
    case failed(DownloadError, DownloadProgress)
    /// The download was cancelled by its user or because its group ended. No event follows.
    case cancelled

    /// The facts known once the origin has answered.
    public struct Started: Hashable, Sendable {
        /// The URL that answered, safe to show.
        public var url: String
        /// The destination's path.
        public var path: FilePath
        /// The complete length in bytes; `nil` if the origin does not state it.
        public var bytesTotal: Int64?
        /// The number of bytes kept from an earlier run.
        public var resumedFrom: Int64
        /// Whether more than one connection may fetch the file. That requires range requests and a known length.
        public var isSegmented: Bool
        /// The validator of this version of the resource, safe to show; `nil` if there is none.
        public var validator: String?

        package init(
            url: String, path: FilePath, bytesTotal: Int64?, resumedFrom: Int64, isSegmented: Bool, validator: String?
        ) {
            self.url = url
            self.path = path
            self.bytesTotal = bytesTotal
            self.resumedFrom = resumedFrom
            self.isSegmented = isSegmented
            self.validator = validator
        }
    }

    /// A change of a segment.
    public struct SegmentChange: Codable, Hashable, Sendable {
        /// A connection began to fetch the segment (`opened`); its end moved down to where another begins (`split`);
        /// all of it is written (`done`); its connection failed and it will be fetched again (`retry`).
        public enum State: String, Codable, Hashable, Sendable {
            case opened, split, done, retry
        }

        /// The segment's number within the download.
        public var segment: Int
        /// The offset of the segment's first byte.
        public var start: Int64
        /// The offset past the segment's last byte; `nil` if unknown.
        public var end: Int64?
        /// What happened.
        public var state: State
        /// The source that the segment is fetched from, safe to show; `nil` for `split`.
        public var source: String?

        package init(segment: Int, start: Int64, end: Int64?, state: State, source: String?) {
            self.segment = segment
            self.start = start
            self.end = end
            self.state = state
            self.source = source
        }
    }

    /// Whether the sequence of events ends with this event, until the download is resumed.
    public var isTerminal: Bool {
        switch self {
        case .paused, .completed, .failed, .cancelled: true
        case .started, .progress, .segment, .retrying, .checkpoint, .note, .state: false
        }
    }
}

extension DownloadEvent {
    /// Whether no event can follow, not even after a resume.
    var isOver: Bool {
        switch self {
        case .completed, .cancelled: true
        case .started, .progress, .segment, .retrying, .checkpoint, .note, .state, .paused, .failed: false
        }
    }
}

/// The progress of a download.
public struct DownloadProgress: Codable, Hashable, Sendable {
    /// Bytes of the file that are present, including those of earlier runs.
    public var bytesDone: Int64 = 0
    /// Those of them that are durable, which a power cut does not lose, as of the last checkpoint. A killed process
    /// loses none of ``bytesDone``.
    ///
    /// All are durable after a pause, and once the file is in place, unless ``DownloadOptions/syncPolicy`` is `none`.
    public var bytesDurable: Int64 = 0
    /// The complete length in bytes; `nil` while it is unknown.
    public var bytesTotal: Int64?
    /// The current rate in bytes per second; `nil` while too little has been measured.
    public var rate: Double?
    /// The number of connections in use.
    public var connections: Int = 0

    public init() {}

    private enum CodingKeys: String, CodingKey {
        case rate, connections
        case bytesDone = "bytes_done"
        case bytesDurable = "bytes_durable"
        case bytesTotal = "bytes_total"
    }

    /// The fraction done, from 0 to 1; `nil` while the total is unknown.
    public var fraction: Double? {
        self.bytesTotal.map { $0 == 0 ? 1 : Double(self.bytesDone) / Double($0) }
    }

    /// The estimated time left at the current rate; `nil` while it is unknown.
    public var timeLeft: Duration? {
        guard let total = self.bytesTotal, let rate = self.rate, rate >= 1 else { return nil }
        return .seconds(Double(max(total - self.bytesDone, 0)) / rate)
    }
}

/// The result of a completed download.
public struct DownloadResult: Hashable, Sendable {
    /// What the file's bytes were verified against.
    public enum Verification: String, Codable, Hashable, Sendable {
        /// A digest that the user gave or the server stated.
        case digest
        /// The same strong entity tag on every response.
        case etag
        /// The same `Last-Modified` on every response.
        case lastModified = "last_modified"
        /// A comparison of bytes with the origin. Parts of the file came from a mirror, or were kept from another
        /// resource or without a validator; samples at their ends and at random places agreed.
        case comparison
        /// Nothing but the length, if the origin stated one. Also if an origin with ranges did not confirm that the file
        /// was the same when its last bytes were sent.
        case none
    }

    /// The file's path; `-` if the bytes went to a descriptor.
    public var path: FilePath
    /// The file's length in bytes.
    public var bytes: Int64
    /// Body bytes received in this run.
    public var bytesFetched: Int64
    /// The number of requests sent in this run.
    public var requests: Int
    /// The largest number of connections in use at the same time.
    public var connectionsPeak: Int
    /// The time from the first look at the destination until the file was in place, counted from the last resume.
    public var duration: Duration
    /// The file's CRC-32 in eight hexadecimal digits; `nil` if the destination was already complete.
    public var crc32: String?
    /// The digests that the file was verified against, and those that were requested in
    /// ``DownloadOptions/computedDigests``.
    public var digests: [ExpectedDigest]
    /// What the file's bytes were verified against.
    public var verifiedBy: Verification
    /// Whether the destination was already complete, so that nothing was fetched.
    public var wasAlreadyComplete: Bool

    /// Makes a result from what is reported of it, as by the process that fetched the file.
    package init(
        reported path: FilePath, bytes: Int64, bytesFetched: Int64, requests: Int, connectionsPeak: Int,
        duration: Duration,
        crc32: String?, digests: [ExpectedDigest], verifiedBy: Verification, wasAlreadyComplete: Bool
    ) {
        self.path = path
        self.bytes = bytes
        self.bytesFetched = bytesFetched
        self.requests = requests
        self.connectionsPeak = connectionsPeak
        self.duration = duration
        self.crc32 = crc32
        self.digests = digests
        self.verifiedBy = verifiedBy
        self.wasAlreadyComplete = wasAlreadyComplete
    }
}

/// The state of a download.
public enum DownloadState: String, Codable, Hashable, Sendable, CaseIterable {
    /// Waiting for its turn.
    case queued
    /// Examining the destination and sending the first request.
    case probing
    /// Fetching bytes.
    case running
    /// Waiting for the next attempt after every connection has failed. ``DownloadEvent/retrying(_:attempt:delay:)``
    /// gives the delay.
    case retrying
    /// All bytes are present and are being verified.
    case verifying
    /// Paused.
    case paused
    /// The file is in place.
    case completed
    /// Failed. The download may be resumed.
    case failed
    /// Cancelled for good.
    case cancelled

    /// Whether the download is at rest: nothing happens until it is resumed, if that is possible.
    public var isAtRest: Bool {
        switch self {
        case .paused, .completed, .failed, .cancelled: true
        case .queued, .probing, .running, .retrying, .verifying: false
        }
    }

    /// Whether the download is over: it cannot be resumed, and adding its request again begins a new download.
    public var isOver: Bool {
        switch self {
        case .completed, .cancelled: true
        case .queued, .probing, .running, .retrying, .verifying, .paused, .failed: false
        }
    }
}
