import SegmentedDownload
import SegmentedDownloadCore
import SystemPackage

/// Refuses two downloads to the same destination in one run.
struct DuplicateDestinations {
    static func check(_ requests: [DownloadRequest]) throws(DownloadError) {
        var destinations = Self()
        var sources: [String: SourceURL] = [:]
        sources.reserveCapacity(requests.count)
        for request in requests {
            guard let key = destinations.key(of: request) else { continue }
            if let other = sources.updateValue(request.source, forKey: key) {
                throw Self.failure("\(other) and \(request.source) have", key)
            }
        }
    }

    private static func failure(_ sources: String, _ key: String) -> DownloadError {
        DownloadError(
            .usage, "\(sources) the same destination, \(key.lastPathComponent.shown)",
            hint: "Fetch them in separate runs, or into different directories with -d")
    }

    /// In most lists, all files have the same directory: the latest one, and its text without dots.
    private var latest = (path: FilePath(), text: "")
    /// Entries by the hashes of their keys, because a list may be long.
    private var taken: [Int: EntryFingerprint] = [:]
    /// 2^20: some 40 MiB. Destinations that occur twice in longer lists are noticed only if they do among so many.
    private static let takenMax = 1 << 20

    /// Takes an entry's destination.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if another entry has taken it. The same entry may occur twice.
    mutating func take(_ request: DownloadRequest, for entry: EntryFingerprint) throws(DownloadError) {
        guard let key = self.key(of: request) else { return }
        if self.taken.count == Self.takenMax { self.taken.removeAll(keepingCapacity: true) }
        guard self.taken.updateValue(entry, forKey: key.hashValue) ?? entry == entry else {
            throw Self.failure("\(request.source) and an earlier entry have", key)
        }
    }

    /// The destination's path, or the path that is likely; nil for a stream, see ``StreamDestinations``.
    ///
    /// The response often names the file of a URL with a query, and a template names others. For these the key is the
    /// URL. If two of them get the same name, the second one fails, because the first is being fetched or is in place.
    /// Names that differ by a symbolic link are not recognized either.
    private mutating func key(of request: DownloadRequest) -> String? {
        switch request.destination {
        case .stream: return nil
        case .file(let path):
            return path.withoutDots
        case .descriptor:
            return request.destination.text
        case .directory(_, _?):
            return request.source.string
        case .directory(let directory, nil):
            let url = request.source.string
            let name = url.lastPathComponent
            guard !url.utf8.contains(UInt8(ascii: "?")), !name.isEmpty else { return url }
            if self.latest.path != directory { self.latest = (directory, directory.withoutDots) }
            return "\(self.latest.text)/\(name)"
        }
    }
}

extension FilePath {
    /// The path without components `.`. A component `..` stays: before it, there may be a symbolic link.
    fileprivate var withoutDots: String {
        FilePath(root: self.root, self.components.filter { $0.kind != .currentDirectory }).string
    }
}
