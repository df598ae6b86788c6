import SegmentedDownloadCore

extension DownloadRequest {
    /// What the manifest keeps of it; what it does not say, a run that began the download may have said.
    func label(inheriting earlier: Manifest.Label?) -> Manifest.Label {
        Manifest.Label(
            id: self.id?.rawValue ?? earlier?.id, priority: self.priorityClamped,
            userInfo: self.userInfo.isEmpty ? earlier?.userInfo ?? [:] : self.userInfo)
    }

    /// Above 0, up to 1, whatever was given.
    private var priorityClamped: Double {
        guard self.priority > 0 else { return Double.leastNormalMagnitude }
        return min(self.priority, 1)
    }
}

extension DownloadRequest.Destination {
    /// A relative one begins in a directory.
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

    /// The same for spellings of a path that differ in slashes at the end and `./` at the beginning.
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
