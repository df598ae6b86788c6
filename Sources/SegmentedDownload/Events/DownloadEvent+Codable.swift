import SegmentedDownloadCore
import SystemPackage

/// An object whose `event` names the event, with the fields of the event beside it. The article <doc:Servers> shows
/// every event.
extension DownloadEvent: Codable {
    /// The words that name the events.
    private enum Name: String, Codable {
        case started, progress, segment, retry, checkpoint, note, state, paused, completed, failed, cancelled
    }

    private enum CodingKeys: String, CodingKey {
        case event, error, attempt, delay, message, state
        case bytesDurable = "bytes_durable"
    }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self =
            switch try values.decode(Name.self, forKey: .event) {
            case .started: .started(try Started(from: decoder))
            case .progress: .progress(try DownloadProgress(from: decoder))
            case .segment: .segment(try SegmentChange(from: decoder))
            case .retry:
                .retrying(
                    try values.decode(DownloadError.self, forKey: .error),
                    attempt: try values.decode(Int.self, forKey: .attempt),
                    delay: try values.decode(EncodedDuration.self, forKey: .delay).value)
            case .checkpoint: .checkpoint(bytesDurable: try values.decode(Int64.self, forKey: .bytesDurable))
            case .note: .note(try values.decode(String.self, forKey: .message))
            case .state: .state(try values.decode(DownloadState.self, forKey: .state))
            case .paused: .paused(try DownloadProgress(from: decoder))
            case .completed: .completed(try DownloadResult(from: decoder))
            case .failed:
                .failed(
                    try values.decode(DownloadError.self, forKey: .error), try DownloadProgress(from: decoder))
            case .cancelled: .cancelled
            }
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(self.word, forKey: .event)
        switch self {
        case .started(let started): try started.encode(to: encoder)
        case .progress(let progress), .paused(let progress): try progress.encode(to: encoder)
        case .segment(let change): try change.encode(to: encoder)
        case .retrying(let error, let attempt, let delay):
            try values.encode(error, forKey: .error)
            try values.encode(attempt, forKey: .attempt)
            try values.encode(EncodedDuration(delay), forKey: .delay)
        case .checkpoint(let bytesDurable): try values.encode(bytesDurable, forKey: .bytesDurable)
        case .note(let text): try values.encode(text, forKey: .message)
        case .state(let state): try values.encode(state, forKey: .state)
        case .completed(let result): try result.encode(to: encoder)
        case .failed(let error, let progress):
            try values.encode(error, forKey: .error)
            try progress.encode(to: encoder)
        case .cancelled: break
        }
    }

    /// The stable name of the event, which is its `event` when it is encoded: `retry` for
    /// ``DownloadEvent/retrying(_:attempt:delay:)``, and the case's own name for the others.
    public var name: String { self.word.rawValue }

    private var word: Name {
        switch self {
        case .started: .started
        case .progress: .progress
        case .segment: .segment
        case .retrying: .retry
        case .checkpoint: .checkpoint
        case .note: .note
        case .state: .state
        case .paused: .paused
        case .completed: .completed
        case .failed: .failed
        case .cancelled: .cancelled
        }
    }
}

/// The fields of the event `started`.
extension DownloadEvent.Started: Codable {
    private enum CodingKeys: String, CodingKey {
        case url, path, validator
        case bytesTotal = "bytes_total"
        case resumedFrom = "resumed_from"
        case isSegmented = "segmented"
    }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            url: try values.decode(String.self, forKey: .url),
            path: FilePath(try values.decode(String.self, forKey: .path)),
            bytesTotal: try values.decodeIfPresent(Int64.self, forKey: .bytesTotal),
            resumedFrom: try values.decode(Int64.self, forKey: .resumedFrom),
            isSegmented: try values.decode(Bool.self, forKey: .isSegmented),
            validator: try values.decodeIfPresent(String.self, forKey: .validator))
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(self.url, forKey: .url)
        try values.encode(self.path.string, forKey: .path)
        try values.encodeIfPresent(self.bytesTotal, forKey: .bytesTotal)
        try values.encode(self.resumedFrom, forKey: .resumedFrom)
        try values.encode(self.isSegmented, forKey: .isSegmented)
        try values.encodeIfPresent(self.validator, forKey: .validator)
    }
}

/// The fields of the event `completed`.
extension DownloadResult: Codable {
    private enum CodingKeys: String, CodingKey {
        case path, bytes, requests, crc32, digests
        case bytesFetched = "bytes_fetched"
        case connectionsPeak = "connections_peak"
        case duration = "seconds"
        case verifiedBy = "verified_by"
        case wasAlreadyComplete = "already_complete"
    }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            reported: FilePath(try values.decode(String.self, forKey: .path)),
            bytes: try values.decode(Int64.self, forKey: .bytes),
            bytesFetched: try values.decode(Int64.self, forKey: .bytesFetched),
            requests: try values.decode(Int.self, forKey: .requests),
            connectionsPeak: try values.decode(Int.self, forKey: .connectionsPeak),
            duration: try values.decode(EncodedDuration.self, forKey: .duration).value,
            crc32: try values.decodeIfPresent(String.self, forKey: .crc32),
            digests: try values.decode([ExpectedDigest].self, forKey: .digests),
            verifiedBy: try values.decode(Verification.self, forKey: .verifiedBy),
            wasAlreadyComplete: try values.decode(Bool.self, forKey: .wasAlreadyComplete))
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(self.path.string, forKey: .path)
        try values.encode(self.bytes, forKey: .bytes)
        try values.encode(self.bytesFetched, forKey: .bytesFetched)
        try values.encode(self.requests, forKey: .requests)
        try values.encode(self.connectionsPeak, forKey: .connectionsPeak)
        try values.encode(EncodedDuration(self.duration), forKey: .duration)
        try values.encodeIfPresent(self.crc32, forKey: .crc32)
        try values.encode(self.digests, forKey: .digests)
        try values.encode(self.verifiedBy, forKey: .verifiedBy)
        try values.encode(self.wasAlreadyComplete, forKey: .wasAlreadyComplete)
    }
}
