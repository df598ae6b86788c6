import Foundation
import SegmentedDownloadCore
import TestSupport

@testable import SegmentedDownload

/// A part in a directory of its own, on a disk that is watched.
struct WatchedPart {
    static let partName = "file.bin.segdl-part"
    static let manifestName = "file.bin.segdl"
    static let draftName = "file.bin.segdl-new"
    static let id: UInt64 = 7

    let disk: WatchedStorage
    let paths: DestinationPaths
    let part: PartialFile

    /// Runs `body` with a part that is created and not begun.
    static func run<Answer>(
        on disk: WatchedStorage = WatchedStorage(), _ body: (WatchedPart) async throws -> Answer
    ) async throws -> Answer {
        try await withTemporaryDirectory { directory in
            let paths = DestinationPaths(directory: directory, name: "file.bin")
            let file = try disk.open(paths.part, .create)
            let part = PartialFile(paths, file: file, storage: disk)
            defer { part.close() }
            _ = disk.take()
            return try await body(WatchedPart(disk: disk, paths: paths, part: part))
        }
    }

    static func resource(_ length: Int64?, tag: String = "\"a\"") -> RemoteResource {
        RemoteResource(
            completeLength: length, validator: Validator(entityTag: EntityTag(fieldValue: tag), lastModified: nil))
    }

    /// Begins it as a new download; the calls of that are not noted.
    func begin(_ length: Int64, hasSetAside: Bool = false) async throws {
        try await self.part.begin(
            Self.resource(length), id: Self.id, sources: ["http://host/file.bin"], digests: [], allocates: true,
            hasSetAside: hasSetAside)
        _ = self.disk.take()
    }

    /// What the file has in a range.
    static func bytes(_ range: Range<Int64>) -> [UInt8] {
        range.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    static func claim(_ range: Range<Int64>, mark: UInt8 = 0) -> Claim {
        Claim(
            offset: range.lowerBound, length: range.upperBound - range.lowerBound, crc: CRC32(of: self.bytes(range)),
            mark: mark)
    }

    func write(_ range: Range<Int64>) throws {
        let result: Result<Void, StorageError> = Self.bytes(range).withUnsafeBytes { buffer in
            do throws(StorageError) {
                return .success(try self.part.write(buffer, at: range.lowerBound))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    /// Writes ranges and claims them.
    func fill(_ ranges: Range<Int64>..., mark: UInt8 = 0) throws {
        for range in ranges {
            try self.write(range)
            try self.part.claim(Self.claim(range, mark: mark))
        }
    }

    /// What the manifest on disk says; absent if there is none.
    func manifest() throws -> Manifest? {
        guard self.exists(self.paths.manifest) else { return nil }
        return try ManifestCodec.decode(Array(Data(contentsOf: URL(fileURLWithPath: self.paths.manifest))))
    }

    func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    func put(_ text: String, at path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }

    func contents(of path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
}

/// The condition of the storage error that something throws.
func condition(of body: () async throws -> some Any) async -> StorageError.Condition? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? StorageError)?.condition
    }
}

/// The code of the failure that something throws.
func failureCode(of body: () async throws -> some Any) async -> DownloadError.Code? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? DownloadError)?.code
    }
}
