import SegmentedDownloadCore
import Synchronization

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
            options: self.options.stored, part: self.options.part)
    }
}

/// The options that were encoded last. The files of a list usually have equal ones, and encoding them took a twelfth of the processor
/// time of short files.
private let lastStored = Mutex<(options: DownloadOptions, text: String)?>(nil)

extension DownloadOptions {
    /// As JSON for a manifest; nil for the defaults. The manifest stores digests, priority and part by themselves.
    fileprivate var stored: String? {
        var options = self.resuming
        options.digests = []
        options.priority = Self().priority
        options.part = nil
        guard options != Self() else { return nil }
        if let last = lastStored.withLock({ $0 }), last.options == options { return last.text }
        let encoder = JSONEncoder()
        // Equal options have equal bytes: a simulated run repeats exactly.
        encoder.outputFormatting = .sortedKeys
        guard let text = (try? encoder.encode(options)).map({ String(decoding: $0, as: UTF8.self) }) else { return nil }
        lastStored.withLock { $0 = (options, text) }
        return text
    }

    /// The options that a manifest stores. Options that cannot be read are replaced by the defaults: which bytes belong to the file
    /// depends only on its part and digests, which the header has.
    init(_ manifest: Manifest) {
        let label = manifest.header.label
        let stored = label.options.map { Data($0.utf8) }
        self = stored.flatMap { try? JSONDecoder().decode(Self.self, from: $0) } ?? Self()
        // Manifests up to version 4 have the part among the options. It is read even if others cannot be.
        self.part = label.part ?? stored.flatMap { try? JSONDecoder().decode(PartOption.self, from: $0) }?.part
        self.digests = manifest.header.digests.compactMap { ExpectedDigest($0) }
        self.priority = label.priority
    }
}

/// The part among stored options, whatever the other ones are.
private struct PartOption: Decodable {
    let part: DownloadOptions.Part?
}
