import Foundation
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// One download's steps on a watched disk, without a network.
enum WatchedJob {
    private static let finalName = "file.bin"

    /// Runs `body` with a directory on a watched disk.
    ///
    /// - Parameter closesAll: whether every file is closed afterwards, and none is left to its last reference.
    static func run(
        closesAll: Bool = true, _ body: (WatchedStorage, String) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let disk = WatchedStorage()
            try await body(disk, directory)
            #expect(disk.openNames.isEmpty || !closesAll)
        }
    }

    static func job(
        _ disk: WatchedStorage, _ directory: String, placed: PlacedFiles = PlacedFiles(), memory: PartMemory? = nil,
        _ change: (inout DownloadRequest) -> Void = { _ in }
    ) throws -> DownloadJob {
        var request = DownloadRequest(
            try SourceURL("http://host/file.bin"), to: .file(directory + "/" + Self.finalName))
        change(&request)
        return DownloadJob(
            id: DownloadID(0), request: request, followers: [], storage: disk, placed: placed, memory: memory)
    }

    static func preparation(
        _ mode: Preparation.Mode = .fresh, length: Int64 = 100, tag: String = "\"a\"", name: String? = nil,
        setsAside: Bool = false
    ) -> Preparation {
        Self.preparation(of: WatchedPart.resource(length, tag: tag), mode, name: name, setsAside: setsAside)
    }

    static func preparation(
        of resource: RemoteResource, _ mode: Preparation.Mode = .fresh, name: String? = nil, setsAside: Bool = false
    ) -> Preparation {
        Preparation(
            resource: resource, mode: mode, suggestedName: name, source: .first, keepsRecord: false,
            setsAside: setsAside, keepsStatements: false)
    }

    /// Writes and claims ranges of a job's part.
    static func fill(_ job: DownloadJob, _ ranges: Range<Int64>...) throws {
        let part = try #require(job.part)
        for range in ranges {
            let result: Result<Void, StorageError> = WatchedPart.bytes(range).withUnsafeBytes { buffer in
                do throws(StorageError) {
                    return .success(try part.write(buffer, at: range.lowerBound))
                } catch {
                    return .failure(error)
                }
            }
            try result.get()
            try part.claim(WatchedPart.claim(range))
        }
    }

    /// Leaves an interrupted download with `0..<50` of 100 bytes.
    static func interrupt(
        _ disk: WatchedStorage, _ directory: String, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws {
        let job = try Self.job(disk, directory, change)
        _ = try await job.survey()
        _ = try await job.prepare(Self.preparation(), id: 7)
        try Self.fill(job, 0..<50)
        _ = try await job.part?.checkpoint(isPause: true)
        job.close()
        _ = disk.take()
    }

    static func contents(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    /// Fetches and places the file.
    static func place(
        _ disk: WatchedStorage, _ directory: String, placed: PlacedFiles = PlacedFiles(),
        _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws {
        let job = try Self.job(disk, directory, placed: placed, change)
        _ = try await job.survey()
        _ = try await job.prepare(Self.preparation(), id: 7)
        try Self.fill(job, 0..<100)
        try await job.place(length: 100, evidence: .validator)
        job.close()
        _ = disk.take()
    }
}
