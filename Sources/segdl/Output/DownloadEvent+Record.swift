import SegmentedDownload

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension EventRecord {
    /// The record in a line that ``jsonLine`` wrote; nil if it is none.
    init?(line: String) {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        guard let record = try? decoder.decode(EventRecord.self, from: Data(line.utf8)) else { return nil }
        self = record
    }
}

extension DownloadEvent {
    /// The event that a record describes; nil for an event of a later version.
    init?(_ record: EventRecord) {
        switch record.event {
        case "started":
            self = .started(
                Started(
                    url: record.url ?? "", path: FilePath(record.path ?? ""), bytesTotal: record.bytesTotal,
                    resumedFrom: record.resumedFrom ?? 0, isSegmented: record.segmented ?? false,
                    validator: record.validator))
        case "progress": self = .progress(DownloadProgress(record))
        case "segment":
            guard let segment = record.segment, let start = record.start,
                let state = record.state.flatMap({ SegmentChange.State(rawValue: $0) })
            else { return nil }
            self = .segment(
                SegmentChange(segment: segment, start: start, end: record.end, state: state, source: record.source))
        case "retry":
            let error = DownloadError(
                DownloadError.Code(rawValue: record.code ?? ""), record.reason ?? "", status: record.status)
            self = .retrying(error, attempt: record.attempt ?? 1, delay: .seconds(record.delay ?? 0))
        case "checkpoint": self = .checkpoint(bytesDurable: record.bytesDurable ?? 0)
        case "note": self = .note(record.message ?? "")
        case "state":
            guard let state = record.state.flatMap({ DownloadState(rawValue: $0) }) else { return nil }
            self = .state(state)
        case "paused": self = .paused(DownloadProgress(record))
        case "completed": self = .completed(DownloadResult(record))
        case "failed":
            let error = DownloadError(
                DownloadError.Code(rawValue: record.code ?? ""), record.message ?? "", hint: record.hint,
                status: record.status, errno: record.errno)
            self = .failed(error, DownloadProgress(record))
        case "cancelled": self = .cancelled
        default: return nil
        }
    }
}

extension DownloadProgress {
    fileprivate init(_ record: EventRecord) {
        self.init()
        self.bytesDone = record.bytesDone ?? 0
        self.bytesTotal = record.bytesTotal
        self.rate = record.rate.map { Double($0) }
        self.connections = record.connections ?? 0
    }
}

extension DownloadResult {
    fileprivate init(_ record: EventRecord) {
        self.init(
            reported: FilePath(record.path ?? ""), bytes: record.bytes ?? 0, bytesFetched: record.bytesFetched ?? 0,
            requests: record.requests ?? 0, connectionsPeak: record.connectionsPeak ?? 0,
            duration: .seconds(record.seconds ?? 0), crc32: record.crc32,
            digests: (record.digests ?? []).compactMap { ExpectedDigest($0) },
            verifiedBy: record.verifiedBy.flatMap { Verification(rawValue: $0) } ?? .none,
            wasAlreadyComplete: record.alreadyComplete ?? false)
    }

    /// What the history says of a completed download.
    init(_ record: EntryRecord) {
        self.init(
            reported: FilePath(record.path), bytes: record.bytesDone ?? 0, bytesFetched: 0, requests: 0,
            connectionsPeak: 0,
            duration: .zero, crc32: nil, digests: [], verifiedBy: .none, wasAlreadyComplete: true)
    }
}

extension TransferFile {
    init(_ record: EventRecord) {
        self.init(id: record.id.map { Download.ID(rawValue: $0) }, path: record.path ?? record.url ?? "")
        self.url = record.url
        self.state = record.event == "progress" ? record.state.flatMap { DownloadState(rawValue: $0) } : nil
        self.userInfo = record.userInfo ?? [:]
    }

    init(_ record: EntryRecord) {
        self.init(
            id: Download.ID(rawValue: record.id), path: record.path.hasSuffix("/") ? record.url : record.path)
        self.url = record.url
        self.userInfo = record.userInfo ?? [:]
    }
}
