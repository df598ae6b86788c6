import Foundation
import Origin
import SegmentedDownload
import TestSupport
import Testing

extension Harness {
    /// Every connection stalls after 300,000 bytes: a download of it runs until the test stops it.
    static let stuck = "/8M/file.bin?stall-after=300000:all"

    /// Runs a group with a client of its own, like a separate process.
    func withGroup<Answer: Sendable>(
        _ configuration: DownloadConfiguration = .init(), _ body: (DownloadGroup) async throws -> Answer
    ) async throws -> Answer {
        try await withDownloadClient(configuration) { client in try await client.withGroup(body) }
    }

    /// Has a resource behave well from now on, and resets all connections, so that what is stuck goes on.
    func release(_ resource: String) async throws {
        _ = self.origin.plainURL(resource)
        try await self.origin.disconnect()
    }

    /// The names in the directory, sorted.
    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: self.directory).sorted() }

    /// A request for a file of its own that runs until the test stops it, or releases `/8M/NAME`.
    func stuckRequest(
        _ name: String = "file.bin", _ change: (inout DownloadRequest) -> Void = { _ in }
    ) throws -> DownloadRequest {
        try self.request("/8M/\(name)?stall-after=300000:all") { request in
            request.destination = .file(self.directory + "/" + name)
            request.stallTimeout = .seconds(3600)
            change(&request)
        }
    }
}

/// The code of the error that `body` throws.
@discardableResult
func code(of body: () async throws -> some Any) async -> DownloadError.Code? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? DownloadError)?.code
    }
}

extension Download {
    /// Waits until it is running and this number of bytes is done.
    func reached(_ bytes: Int64) async {
        // Subscribed first: what was reported before is not reported again.
        let events = self.events
        // At rest it has its bytes, too: a resumed one is at rest until the engine resumes it.
        guard self.state != .running || self.snapshot.bytesDone < bytes else { return }
        for await event in events {
            if case .progress(let progress) = event, progress.bytesDone >= bytes { return }
        }
    }
}
