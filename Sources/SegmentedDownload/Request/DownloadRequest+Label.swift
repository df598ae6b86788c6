import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension DownloadRequest {
    /// The part of the request that the manifest stores. An id or user information that is missing is taken from the run that began
    /// the download.
    func label(inheriting earlier: Manifest.Label?) -> Manifest.Label {
        Manifest.Label(
            id: self.id?.rawValue ?? earlier?.id, priority: self.options.clamped.priority,
            userInfo: self.userInfo.isEmpty ? earlier?.userInfo ?? [:] : self.userInfo,
            options: self.options.stored)
    }
}

extension DownloadOptions {
    /// As JSON for a manifest; nil for the defaults. The manifest stores digests and priority by themselves.
    fileprivate var stored: String? {
        var options = self.resuming
        options.digests = []
        options.priority = Self().priority
        guard options != Self() else { return nil }
        let encoder = JSONEncoder()
        // Equal options have equal bytes: a simulated run repeats exactly.
        encoder.outputFormatting = .sortedKeys
        return (try? encoder.encode(options)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The options that a manifest stores. Options that cannot be read are replaced by the defaults: bytes and digests do not depend
    /// on them.
    init(_ manifest: Manifest) {
        let label = manifest.header.label
        let stored = label.options.flatMap { try? JSONDecoder().decode(Self.self, from: Data($0.utf8)) }
        self = stored ?? Self()
        self.digests = manifest.header.digests.compactMap { ExpectedDigest($0) }
        self.priority = label.priority
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
