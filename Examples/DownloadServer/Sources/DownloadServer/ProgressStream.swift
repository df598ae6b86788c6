import Foundation
import Hummingbird
import SegmentedDownload
import ServiceLifecycle

/// The events of a download as a stream of server-sent events.
///
/// The first event is `snapshot`, the status at the beginning. The others are the library's, as it encodes them. The
/// stream ends after the download's terminal event, when the client closes the connection, and when the server shuts
/// down.
struct ProgressStream: ResponseGenerator {
    private let snapshot: DownloadStatus
    private let events: AsyncStream<DownloadEvent>

    init(_ download: Download) {
        // In this order, so that no event is lost between the two.
        self.events = download.events
        self.snapshot = DownloadStatus(download)
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
                    try await writer.write(Self.frame(event.name, event))
                }
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
    }

    /// One event of the stream, with its data as one line of JSON.
    private static func frame(_ name: String, _ data: some Encodable) throws -> ByteBuffer {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let json = String(decoding: try encoder.encode(data), as: UTF8.self)
        return ByteBuffer(string: "event: \(name)\ndata: \(json)\n\n")
    }
}
