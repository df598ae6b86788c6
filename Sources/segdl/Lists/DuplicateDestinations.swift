import SegmentedDownload

/// Refuses two downloads of one file in one run.
enum DuplicateDestinations {
    static func check(_ requests: [DownloadRequest]) throws(DownloadError) {
        var sources: [String: SourceURL] = [:]
        for request in requests {
            let key = Self.key(of: request)
            if let other = sources.updateValue(request.source, forKey: key) {
                throw DownloadError(
                    .usage, "\(other) and \(request.source) are the same destination, \(key.lastPathComponent.shown)",
                    hint: "Fetch them one after the other, or into different directories with -d")
            }
        }
    }

    /// The path, or what it will probably be.
    ///
    /// A URL with a query is often named by the response, and one with a template by that, so they are only held against themselves;
    /// should two such have one name after all, the second to begin finds the part file locked and fails.
    private static func key(of request: DownloadRequest) -> String {
        switch request.destination {
        case .file(let path):
            return path
        case .descriptor:
            return "-"
        case .directory(_, _?):
            return request.source.string
        case .directory(let directory, nil):
            let url = request.source.string
            let name = url.lastPathComponent
            return url.contains("?") || name.isEmpty ? url : "\(directory)/\(name)"
        }
    }
}
