import SegmentedDownloadCore
import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Which entry of a task has a file of which path, so that no entry replaces the file of another one. The same entry may occur
/// twice.
struct EntryPaths {
    /// Entries by the hashes of paths, because a list may be long.
    private var owners: [Int: EntryFingerprint] = [:]
    /// 2^18: 8 MiB. In longer lists, entries further apart than this may have the same path unnoticed.
    private static let countMax = 1 << 18

    private let directory = FilePath(FileManager.default.currentDirectoryPath)

    /// Records that an entry has a path.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if another entry has it.
    mutating func claim(_ path: FilePath, of entry: EntryFingerprint) throws(DownloadError) {
        let key = self.directory.pushing(path).lexicallyNormalized().string.hashValue
        if let owner = self.owners[key] {
            guard owner == entry else {
                throw DownloadError(
                    .usage, "another entry has the same destination, \(path.string.printable)",
                    hint: "Give each entry a file of its own, with out= or another directory")
            }
            return
        }
        if self.owners.count == Self.countMax { self.owners.removeAll(keepingCapacity: true) }
        self.owners[key] = entry
    }
}
