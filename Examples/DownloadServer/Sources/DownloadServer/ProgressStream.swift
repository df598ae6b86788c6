import Foundation
import Hummingbird
import SegmentedDownload
import ServiceLifecycle

/// The events of a download as a stream of server-sent events.
///
/// The first event is `snapshot`, the status at the beginning. The stream ends after the download's terminal event, when
/// the client closes the connection, and when the server shuts down.
struct ProgressStream: ResponseGenerator {
    private let snapshot: DownloadStatus
    private let events: AsyncStream<DownloadEvent>

    init(_ download: Download) async {
        // In this order, so that no event is lost between the two.
        self.events = download.events
        self.snapshot = await DownloadStatus(download)
    }

    /// The stream of a download that has left the group: the snapshot alone.
    init(ended snapshot: DownloadStatus) {
        self.snapshot = snapshot
        self.events = AsyncStream { $0.finish() }
    }

    func response(from request: Request, context: some RequestContext) -> Response {
        let (snapshot, events) = (self.snapshot, self.events)
        let body = ResponseBody { writer in
            // A queued download may have no event for hours, so a failing write is not enough to notice the client's end.
            try await request.body.consumeWithCancellationOnInboundClose { _ in
                try await writer.write(Self.frame("snapshot", snapshot))
                for await event in events.cancelOnGracefulShutdown() {
                    guard let (name, data) = Self.describe(event) else { continue }
                    try await writer.write(Self.frame(name, data))
                }
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
    }

    /// The data of an event. Values that do not apply to the event are absent.
    private struct EventData: Encodable {
        var url: String?
        var path: String?
        var bytesDone: Int64?
        var bytesTotal: Int64?
        var bytesFetched: Int64?
        var resumedFrom: Int64?
        var bytesPerSecond: Int64?
        var connections: Int?
        var verifiedBy: String?
        var message: String?
        var error: DownloadStatus.Failure?
    }

    /// The name and data of an event; `nil` for details that clients of this server do not need.
    private static func describe(_ event: DownloadEvent) -> (name: String, data: EventData)? {
        switch event {
        case .started(let started):
            let data = EventData(
                url: started.url, path: started.path.string, bytesTotal: started.bytesTotal,
                resumedFrom: started.resumedFrom)
            return ("started", data)
        case .progress(let progress):
            return ("progress", Self.data(progress))
        case .note(let text):
            return ("note", EventData(message: text))
        case .retrying(let error, let attempt, let delay):
            return ("note", EventData(message: "attempt \(attempt) failed: \(error.message); the next is in \(delay)"))
        case .paused(let progress):
            return ("paused", Self.data(progress))
        case .completed(let result):
            let data = EventData(
                path: result.path.string, bytesDone: result.bytes, bytesTotal: result.bytes,
                bytesFetched: result.bytesFetched, verifiedBy: result.verifiedBy.rawValue)
            return ("completed", data)
        case .failed(let error, let progress):
            var data = Self.data(progress)
            data.error = DownloadStatus.Failure(error)
            return ("failed", data)
        case .cancelled:
            return ("cancelled", EventData())
        case .segment, .checkpoint, .state:
            return nil
        }
    }

    private static func data(_ progress: DownloadProgress) -> EventData {
        EventData(
            bytesDone: progress.bytesDone, bytesTotal: progress.bytesTotal,
            bytesPerSecond: progress.rate.flatMap { Int64(exactly: $0.rounded()) }, connections: progress.connections)
    }

    /// One event of the stream, with its data as one line of JSON.
    private static func frame(_ name: String, _ data: some Encodable) throws -> ByteBuffer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let json = String(decoding: try encoder.encode(data), as: UTF8.self)
        return ByteBuffer(string: "event: \(name)\ndata: \(json)\n\n")
    }
}
