import SegmentedDownloadCore
public import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The disk space used by files that this program has demonstrably downloaded.
public struct DiskUsage: Hashable, Sendable {
    /// The length of finished files, in bytes. A file counts if its extended attribute has its length and modification time.
    public var finished: Int64 = 0
    /// The space reserved for parts that have a manifest, in bytes.
    public var parts: Int64 = 0
    /// The length of the manifests beside the parts, in bytes.
    public var manifests: Int64 = 0
    /// The number of finished files and interrupted downloads.
    public var files = 0
    /// Errors of files that could not be examined or deleted. The figures do not include those files.
    public var problems: [DownloadError] = []

    public init() {}

    /// The sum in bytes.
    public var total: Int64 { self.finished + self.parts + self.manifests }

    /// Measures a directory and its subdirectories. Symbolic links are not followed; see ``problems`` for what was
    /// skipped.
    ///
    /// - Throws: ``DownloadError`` with code `file` if the directory itself cannot be read.
    public init(of directory: FilePath) async throws(DownloadError) {
        try await self.init(of: directory, storage: POSIXStorage())
    }

    init(of directory: FilePath, storage: any Storage) async throws(DownloadError) {
        let path = try directory.text
        self.init()
        do throws(StorageError) {
            let listing = try await EngineThreads.aside { () throws(StorageError) in
                try OwnedFiles(storage: storage).listing(of: path)
            }
            for item in listing.items { self.count(item) }
            self.problems = listing.problems.map(\.failure)
        } catch {
            throw error.failure
        }
    }

    /// Deletes the parts and manifests of interrupted downloads that were last written longer than `age` ago.
    ///
    /// Finished files stay, and so do parts that another process has locked, that were altered, or that are not
    /// demonstrably a download of this program.
    ///
    /// - Parameters:
    ///   - directory: The directory to search, with its subdirectories.
    ///   - age: The minimum time since the last write.
    ///   - isTrial: Whether nothing is deleted and the result states what would be.
    ///   - note: Called for each interrupted download that is deleted, with its destination.
    /// - Returns: What was deleted, or would be; ``problems`` lists what could not be examined or deleted.
    /// - Throws: ``DownloadError`` with code `file` if the directory itself cannot be read.
    public static func deleteInterrupted(
        in directory: FilePath, olderThan age: Duration, isTrial: Bool = false,
        _ note: (FilePath, DiskUsage) -> Void = { _, _ in }
    ) async throws(DownloadError) -> DiskUsage {
        try await Self.deleteInterrupted(
            in: directory, olderThan: age, isTrial: isTrial, now: Date().timeIntervalSince1970,
            storage: POSIXStorage(), note)
    }

    /// - Parameter now: The time in seconds since 1970.
    static func deleteInterrupted(
        in directory: FilePath, olderThan age: Duration, isTrial: Bool, now: Double, storage: any Storage,
        _ note: (FilePath, DiskUsage) -> Void
    ) async throws(DownloadError) -> DiskUsage {
        let path = try directory.text
        let ownedFiles = OwnedFiles(storage: storage)
        // Clamped: a very large age would give a time before 1970.
        let latest = Int64(max(now - age / .seconds(1), 0) * 1e9)
        var deleted = DiskUsage()
        do throws(StorageError) {
            let listing = try await EngineThreads.aside { () throws(StorageError) in
                try ownedFiles.listing(of: path)
            }
            deleted.problems = listing.problems.map(\.failure)
            for case .interrupted(let paths, let part, let manifest) in listing.items {
                let item = OwnedFiles.Item.interrupted(paths, part: part, manifest: manifest)
                do throws(StorageError) {
                    let isDeleted = try await EngineThreads.aside { () throws(StorageError) in
                        guard try ownedFiles.lastWritten(paths) < latest else { return false }
                        return isTrial ? true : try ownedFiles.delete(item)
                    }
                    guard isDeleted else { continue }
                } catch {
                    deleted.problems.append(error.failure)
                    continue
                }
                var one = DiskUsage()
                one.count(item)
                deleted.count(item)
                note(FilePath(paths.destination), one)
            }
        } catch {
            throw error.failure
        }
        return deleted
    }

    mutating func count(_ item: OwnedFiles.Item) {
        self.files += 1
        switch item {
        case .finished(_, let length): self.finished += length
        case .interrupted(_, let part, let manifest):
            self.parts += part
            self.manifests += manifest
        }
    }
}

extension DownloadGroup {
    /// Measures the group's directory.
    ///
    /// - Throws: ``DownloadError`` with code `file` if it cannot be read.
    public func diskUsage() async throws(DownloadError) -> DiskUsage {
        try await DiskUsage(of: self.directory, storage: self.storage)
    }

    /// The number of bytes that this process may still write to the group's directory.
    ///
    /// - Throws: ``DownloadError`` with code `file` if the system call fails.
    public func freeSpace() async throws(DownloadError) -> Int64 {
        do throws(StorageError) {
            return try await EngineThreads.aside { () throws(StorageError) in
                try self.storage.freeSpace(in: self.directory.string)
            }
        } catch {
            throw error.failure
        }
    }

    /// Cancels and removes every download of the group, and deletes the files they made.
    ///
    /// In a named group this deletes every file in the directory that is demonstrably a download of this program; in
    /// other groups the files of the listed downloads. Altered files and parts that another process has locked stay.
    ///
    /// - Returns: What was deleted.
    /// - Throws: ``DownloadError`` with code `file` if a file could not be deleted.
    @discardableResult
    public func deleteFiles() async throws(DownloadError) -> DiskUsage {
        let downloads = self.downloads
        // Paused first: an active download holds its part's lock, and a locked part is not deleted.
        await self.pauseAll()
        let deleted: DiskUsage
        do throws(StorageError) {
            deleted = try await EngineThreads.aside { () throws(StorageError) in
                try self.deleteFiles(of: downloads)
            }
        } catch {
            throw error.failure
        }
        for download in downloads { await self.remove(download) }
        return deleted
    }

    private func deleteFiles(of downloads: [Download]) throws(StorageError) -> DiskUsage {
        let ownedFiles = OwnedFiles(storage: self.storage)
        var deleted = DiskUsage()
        var items: [OwnedFiles.Item] = []
        if self.name != nil {
            let listing = try ownedFiles.listing(of: self.directory.string)
            items = listing.items
            deleted.problems = listing.problems.map(\.failure)
        }
        for download in downloads { items += try ownedFiles.items(at: download.job.path) }
        var seen: Set<OwnedFiles.Item> = []
        for item in items where seen.insert(item).inserted {
            if try ownedFiles.delete(item) { deleted.count(item) }
        }
        return deleted
    }
}
