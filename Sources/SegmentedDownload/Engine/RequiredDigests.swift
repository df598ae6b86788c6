import SegmentedDownloadCore

/// The digests that a file must have: those of the request, of its manifest, and of the server.
struct RequiredDigests: Hashable, Sendable {
    /// The request's digests, and those that the manifest of the same source records. The next manifest records them.
    private(set) var recorded: [ExpectedDigest]
    /// The whole-file digest of the latest response.
    private var latest: ExpectedDigest?
    /// The whole-file digest of the response that defined the resource.
    private var announced: ExpectedDigest?

    init(_ requested: [ExpectedDigest]) {
        self.recorded = requested
    }

    /// All digests that the file must have.
    ///
    /// The server's digest is not stored in the manifest, because every run receives it again. It is ignored if the
    /// user gave a digest of an algorithm that is at least as strong.
    var all: [ExpectedDigest] {
        guard let announced,
            !self.recorded.contains(where: { $0.algorithm.isTrusted(asMuchAs: announced.algorithm) })
        else { return self.recorded }
        return self.recorded + [announced]
    }

    /// Notes the whole-file digest of a response; `nil` if it has none.
    mutating func note(_ digest: ExpectedDigest?) {
        self.latest = digest
    }

    /// Expects the digest of the latest response, which defines the resource.
    mutating func expectLatest() {
        self.announced = self.latest
    }

    /// Adds the digests that a manifest of the same source records, except for algorithms that the request gives
    /// itself.
    mutating func inherit(_ header: Manifest.Header, of source: SourceURL) {
        let text = source.resourceText
        guard header.recordedSources.contains(where: { RecordedSource.resourceText(of: $0.url) == text }) else {
            return
        }
        for digest in header.digests.compactMap({ ExpectedDigest($0) })
        where !self.recorded.contains(where: { $0.algorithm == digest.algorithm }) {
            self.recorded.append(digest)
        }
    }

    /// Whether a manifest has digests and all of them still apply. They identify the file independently of its URL.
    func pins(_ header: Manifest.Header) -> Bool {
        let known = Set(header.digests)
        return !known.isEmpty && known.isSubset(of: self.recorded.map(\.description))
    }
}
