import Foundation
import Origin
import SegmentedDownload
import TestSupport
import Testing

/// One origin, one directory, and downloads between them.
struct Harness {
    let origin: Origin
    let directory: String

    /// Runs `body` with a fresh origin and directory.
    static func run<Answer>(
        _ configuration: Origin.Configuration = .init(), _ body: (Harness) async throws -> Answer
    ) async throws -> Answer {
        try await withTemporaryDirectory { directory in
            try await withOrigin(configuration) { origin in
                try await body(Harness(origin: origin, directory: directory))
            }
        }
    }

    var path: String { self.directory + "/file.bin" }
    var part: String { self.path + ".segdl-part" }
    var manifest: String { self.path + ".segdl" }

    /// A request for the resource's plain URL: with another query it is the same resource with another behaviour.
    func request(_ resource: String, _ change: (inout DownloadRequest) -> Void = { _ in }) throws -> DownloadRequest {
        var request = DownloadRequest(try SourceURL(self.origin.plainURL(resource)), to: .file(self.path))
        request.segments = .exactly(4)
        request.splitLengthMinimum = 64 << 10
        change(&request)
        return request
    }

    /// Fetches a resource with a client of its own, like a separate process.
    func fetch(
        _ resource: String, configuration: DownloadConfiguration = .init(),
        _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async -> Result<DownloadResult, DownloadError> {
        do {
            let request = try self.request(resource, change)
            return .success(
                try await withDownloadClient(configuration) { client in try await client.download(request) })
        } catch let error as DownloadError {
            return .failure(error)
        } catch {
            return .failure(DownloadError(.internal, "\(error)"))
        }
    }

    /// Fetches until this number of bytes is done, then pauses: the state after Ctrl-C.
    func interrupt(
        _ resource: String, after bytes: Int64, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws {
        let request = try self.request(resource, change)
        try await withDownloadClient { client in
            try await client.withGroup { group in
                let download = try group.add(request)
                for await event in download.events {
                    if case .progress(let progress) = event, progress.bytesDone >= bytes {
                        await download.pause()
                    }
                }
                #expect(download.state == .paused)
            }
        }
    }

    /// The bytes of a file that answered requests asked for since the log was last reset, each counted once.
    ///
    /// Unlike the number of bytes received, it does not depend on the machine's speed: where a connection looks late or
    /// a segment is divided, some bytes come twice.
    func bytesRequested(of length: Int64) -> Int64 {
        let ranges = self.origin.log.snapshot().requests.filter { $0.status == 206 }.compactMap { request in
            let bounds = request.range?.dropFirst("bytes=".count).split(separator: "-").compactMap { Int64($0) } ?? []
            return bounds.first.map { $0..<min(bounds.count > 1 ? bounds[1] + 1 : length, length) }
        }
        var (count, next) = (Int64(0), Int64(0))
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.upperBound > next {
            count += range.upperBound - max(range.lowerBound, next)
            next = range.upperBound
        }
        return count
    }

    func contains(seed: UInt64, length: Int64) -> Bool {
        OriginContent(seed: seed).firstMismatch(inFileAt: self.path, length: length) == nil
    }

    func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }

    func remove(_ path: String) throws { try FileManager.default.removeItem(atPath: path) }

    func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }
}

extension Result where Failure == DownloadError {
    var code: DownloadError.Code? {
        if case .failure(let error) = self { return error.code }
        return nil
    }

    var value: Success? {
        if case .success(let value) = self { return value }
        return nil
    }
}

extension Int {
    var mebibytes: Int64 { Int64(self) << 20 }
}
