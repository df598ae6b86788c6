import SegmentedDownloadCore

extension DownloadRequest {
    /// The label that the manifest stores. An id and user information that the request lacks are taken from the earlier
    /// label.
    func label(inheriting earlier: Manifest.Label?) -> Manifest.Label {
        Manifest.Label(
            id: self.id?.rawValue ?? earlier?.id, priority: self.priorityClamped,
            userInfo: self.userInfo.isEmpty ? earlier?.userInfo ?? [:] : self.userInfo)
    }

    /// The priority, clamped to above 0 and at most 1.
    private var priorityClamped: Double {
        guard self.priority > 0 else { return Double.leastNormalMagnitude }
        return min(self.priority, 1)
    }
}

extension DownloadRequest.Destination {
    /// The destination with a relative path resolved against a directory.
    func resolved(in base: String) -> Self {
        guard base != "." else { return self }
        switch self {
        case .file(let path): return .file(Self.join(base, path))
        case .directory(let directory, let name): return .directory(Self.join(base, directory), name: name)
        case .descriptor: return self
        }
    }

    private static func join(_ base: String, _ path: String) -> String {
        if path.utf8.first == UInt8(ascii: "/") { return path }
        if path.isEmpty || path == "." { return base }
        return base.utf8.last == UInt8(ascii: "/") ? base + path : base + "/" + path
    }

    /// The destination without `./` at the beginning and `/` at the end of its path, so that such spellings compare
    /// equal.
    var normalized: Self {
        switch self {
        case .file(let path): return .file(Self.trimmed(path))
        case .directory(let directory, let name): return .directory(Self.trimmed(directory), name: name)
        case .descriptor: return self
        }
    }

    private static func trimmed(_ path: String) -> String {
        var rest = Substring(path).utf8
        while rest.count > 2, rest.starts(with: "./".utf8) { rest = rest.dropFirst(2) }
        while rest.count > 1, rest.last == UInt8(ascii: "/") { rest = rest.dropLast() }
        return String(Substring(rest))
    }
}
