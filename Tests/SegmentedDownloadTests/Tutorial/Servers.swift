// The article with this file's name shows the code between "// begin" and "// end".

// begin
import Foundation
import Logging
import SegmentedDownload
import SegmentedDownloadService
import ServiceLifecycle
import UnixSignals

/// The service group of a server and its downloads, which ends with a signal.
func services(of server: some Service, _ downloads: DownloadService, _ logger: Logger) -> ServiceGroupConfiguration {
    // Shut down in reverse order: first the requests end, then the downloads are paused.
    var configuration = ServiceGroupConfiguration(
        services: [DownloadServiceLifecycle(downloads), server], gracefulShutdownSignals: [.sigterm, .sigint],
        logger: logger)
    // A client that has stopped reading its answer delays the shutdown no longer.
    configuration.maximumGracefulShutdownDuration = .seconds(20)
    return configuration
}
// end

// begin
/// Adds a download, or finds the one of the same URL and resumes it if it is paused or failed.
func add(_ url: String, named name: String?, to downloads: DownloadService) async throws -> Download {
    let template = try name.map { try NameTemplate($0) }
    var request = DownloadRequest(try SourceURL(url), to: .directory(".", name: template))
    request.id = Download.ID(UUID().uuidString)
    let group = try await downloads.downloads()
    // By its URL, because a restored download has its file as the destination.
    if let known = group.download(for: request.source), !known.state.isOver, !known.isStream {
        known.resume()
        return known
    }
    return try group.add(request)
}
// end

// begin
/// What to store: the downloads that have not ended, also those of which nothing is on disk.
func unfinished(in group: DownloadGroup) -> [ResumeState] {
    group.downloads.filter { !$0.state.isOver && !$0.isStream }.map(\.resumeState)
}

/// Adds what an earlier process has left on disk, and what was stored.
func restore(_ states: [ResumeState], in downloads: DownloadService) async throws -> [Restoration.Omission] {
    let group = try await downloads.downloads()
    let omissions = try await group.restore(.running).omissions
    // Adds nothing if the download was restored from its manifest, because the ids are equal.
    for state in states { try group.add(resuming: state) }
    return omissions
}
// end

// begin
/// A queue whose downloads continue when the next process runs it.
func queue(in directory: FilePath) -> DownloadQueue {
    DownloadQueue(database: directory.appending("state/queue.sqlite"), directory: directory.appending("files"))
}

/// Adds a download that survives a crash from then on.
func add(_ url: String, to queue: DownloadQueue) async throws -> QueueEntry.ID {
    try await queue.add([DownloadRequest(SourceURL(url))])[0]
}
// end

// begin
/// Sends a download's progress and then its events, as server-sent events, until it rests or the server shuts down.
func sendEvents(of download: Download, to write: (String) async throws -> Void) async throws {
    let encoder = JSONEncoder()
    func send(_ name: String, _ data: some Encodable) async throws {
        try await write("event: \(name)\ndata: \(String(decoding: encoder.encode(data), as: UTF8.self))\n\n")
    }
    // Before the snapshot, so that no event is lost between the two.
    let events = download.events
    try await send("snapshot", download.snapshot)
    for await event in events.cancelOnGracefulShutdown() { try await send(event.name, event) }
}
// end

// begin
/// Passes a file on. `begin` sends the head of the response, with the length if it is known.
func pass(
    _ source: SourceURL, from downloads: DownloadService, beginning begin: (Int64?) async throws -> Void,
    to write: ([UInt8]) async throws -> Void
) async throws {
    let bytes = try await downloads.downloads().stream(DownloadRequest(source), window: 8 << 20)
    // Before the response begins, so that a file that cannot be fetched has an error status.
    let length = try await bytes.length()
    try await begin(length)
    for try await piece in bytes { try await write(piece) }
}
// end

// begin
func service(serving files: [SourceURL: InMemoryTransport.File], in directory: FilePath) -> DownloadService {
    var configuration = DownloadConfiguration()
    configuration.transport = InMemoryTransport(files)
    return DownloadService(configuration, directory: directory)
}
// end

// begin
/// Serves one file, whose bytes come when the test sends them.
struct ManualTransport: DownloadTransport {
    let length: Int
    let pieces: AsyncStream<[UInt8]>

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        TransportResponse(status: 200, fields: [.contentLength: "\(self.length)"], body: self.pieces)
    }
}
// end
