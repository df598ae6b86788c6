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
