import SegmentedDownload
import SystemPackage

/// Refuses two downloads to the same destination in one run.
enum DuplicateDestinations {
    static func check(_ requests: [DownloadRequest]) throws(DownloadError) {
        var sources: [String: SourceURL] = [:]
        sources.reserveCapacity(requests.count)
        // In most lists, all files have the same directory.
        var directory = (path: FilePath(), text: "")
        for request in requests {
            guard let key = Self.key(of: request, &directory) else { continue }
            if let other = sources.updateValue(request.source, forKey: key) {
                throw DownloadError(
                    .usage, "\(other) and \(request.source) have the same destination, \(key.lastPathComponent.shown)",
                    hint: "Fetch them in separate runs, or into different directories with -d")
            }
        }
    }

    /// The destination's path, or the path that is likely; nil for a stream, see ``StreamDestinations``.
    ///
    /// The response often names the file of a URL with a query, and a template names others. For these the key is the
    /// URL. If two of them get the same name, the second one fails, because the first is being fetched or is in place.
    /// Names that differ by a symbolic link are not recognized either.
    ///
    /// - Parameter latest: The latest directory, and its text without dots.
    private static func key(of request: DownloadRequest, _ latest: inout (path: FilePath, text: String)) -> String? {
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
            if latest.path != directory { latest = (directory, directory.withoutDots) }
            return "\(latest.text)/\(name)"
        }
    }
}

extension FilePath {
    /// The path without components `.`. A component `..` stays: before it, there may be a symbolic link.
    fileprivate var withoutDots: String {
        FilePath(root: self.root, self.components.filter { $0.kind != .currentDirectory }).string
    }
}
