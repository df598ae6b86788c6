import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Bytes on disk that are provably downloads of this program's.
public struct DiskUsage: Hashable, Sendable {
    /// Of finished files that know themselves by their extended attribute and are unaltered.
    public var finished: Int64 = 0
    /// Reserved for parts that a manifest is of.
    public var parts: Int64 = 0
    /// Of the manifests beside the parts.
    public var manifests: Int64 = 0
    /// Finished files and interrupted downloads.
    public var files = 0
    /// What could not be looked at, or not be deleted: the figures are without it.
    public var problems: [DownloadError] = []

    public init() {}

    /// All of it, in bytes.
    public var total: Int64 { self.finished + self.parts + self.manifests }

    /// What a directory holds, and those within it; symbolic links are not followed. What cannot be looked at is passed over, see
    /// ``problems``.
    ///
    /// - Throws: ``DownloadError`` with code `file` if the directory itself cannot be read.
    public init(of directory: String) throws(DownloadError) {
        self.init()
        do throws(StorageError) {
            let listing = try OwnedFiles(storage: POSIXStorage()).listing(of: directory)
            for item in listing.items { self.count(item) }
            self.problems = listing.problems.map { DownloadError($0.failure) }
        } catch {
            throw DownloadError(error.failure)
        }
    }

    /// Deletes interrupted downloads that nobody has gone on with: part and manifest of each whose last byte was written longer ago
    /// than `age`, in a directory and those within it. What another process is at, is altered or is not provably ours stays, and so
    /// do finished files.
    ///
    /// - Parameters:
    ///   - isTrial: Whether nothing is deleted, and what would be is only told.
    ///   - note: Called for each, with its destination.
    /// - Returns: What was deleted, or would be, and in ``problems`` what could not be looked at or deleted.
    /// - Throws: ``DownloadError`` with code `file` if the directory itself cannot be read.
    public static func deleteInterrupted(
        in directory: String, olderThan age: Duration, isTrial: Bool = false,
        _ note: (String, DiskUsage) -> Void = { _, _ in }
    ) throws(DownloadError) -> DiskUsage {
        let belongings = OwnedFiles(storage: POSIXStorage())
        // Nothing was written before 1970.
        let latest = Int64(max(Date().timeIntervalSince1970 - age / .seconds(1), 0) * 1e9)
        var deleted = DiskUsage()
        do throws(StorageError) {
            let listing = try belongings.listing(of: directory)
            deleted.problems = listing.problems.map { DownloadError($0.failure) }
            for case .interrupted(let paths, let part, let manifest) in listing.items {
                let item = OwnedFiles.Item.interrupted(paths, part: part, manifest: manifest)
                do throws(StorageError) {
                    guard try belongings.lastWritten(paths) < latest else { continue }
                    if !isTrial { guard try belongings.delete(item) else { continue } }
                } catch {
                    deleted.problems.append(DownloadError(error.failure))
                    continue
                }
                var one = DiskUsage()
                one.count(item)
                deleted.count(item)
                note(paths.destination, one)
            }
        } catch {
            throw DownloadError(error.failure)
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
    /// What the group's directory holds.
    ///
    /// - Throws: ``DownloadError`` with code `file` if it cannot be read.
    public func diskUsage() throws(DownloadError) -> DiskUsage { try DiskUsage(of: self.directory) }

    /// Bytes this process may still write to the group's directory.
    ///
    /// - Throws: ``DownloadError`` with code `file` if the system does not say.
    public func freeSpace() throws(DownloadError) -> Int64 {
        do throws(StorageError) {
            return try self.storage.freeSpace(in: self.directory)
        } catch {
            throw DownloadError(error.failure)
        }
    }

    /// Cancels and forgets every download, and deletes what they made. In a named group that is everything in its directory which
    /// is provably ours; in others the files of the downloads listed. What is altered, locked by another process or not ours stays.
    ///
    /// - Returns: What was deleted.
    /// - Throws: ``DownloadError`` with code `file` if something could not be.
    @discardableResult
    public func removeAll() async throws(DownloadError) -> DiskUsage {
        let downloads = self.downloads
        let belongings = OwnedFiles(storage: self.storage)
        var deleted = DiskUsage()
        do throws(StorageError) {
            // Before they are cancelled: that deletes the parts of those under way.
            await self.pauseAll()
            var items: [OwnedFiles.Item] = []
            if self.name != nil {
                let listing = try belongings.listing(of: self.directory)
                items = listing.items
                deleted.problems = listing.problems.map { DownloadError($0.failure) }
            }
            for download in downloads { items += try belongings.items(at: download.path) }
            var seen: Set<OwnedFiles.Item> = []
            for item in items where seen.insert(item).inserted {
                if try belongings.delete(item) { deleted.count(item) }
            }
        } catch {
            throw DownloadError(error.failure)
        }
        for download in downloads { await self.remove(download) }
        return deleted
    }
}
