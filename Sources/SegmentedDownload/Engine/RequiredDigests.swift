import SegmentedDownloadCore

/// The digests that the file must have: those that the user gave in this run or an earlier one, and those that servers have
/// stated in any response.
struct RequiredDigests: Hashable, Sendable {
    /// The request's digests, and those that the manifest of the same file records as given.
    private(set) var recorded: [ExpectedDigest]
    /// In the order in which they were stated. Two of one algorithm that differ are both kept: the file cannot have both.
    private(set) var stated: [ExpectedDigest] = []

    init(_ requested: [ExpectedDigest]) {
        self.recorded = requested
    }

    /// All digests that the file must have.
    ///
    /// A server's digest is ignored if the user gave a digest of an algorithm that is at least as strong.
    var all: [ExpectedDigest] {
        self.recorded
            + self.stated.filter { digest in
                !self.recorded.contains { $0.algorithm.isTrusted(asMuchAs: digest.algorithm) }
            }
    }

    /// Adds what a response states about all bytes.
    mutating func state(_ digests: [ExpectedDigest]) {
        for digest in digests where !self.stated.contains(digest) { self.stated.append(digest) }
    }

    /// Forgets what was stated about an earlier version, of which no byte is kept.
    mutating func beginAnew() { self.stated = [] }

    /// Adds the digests that a manifest of the same file records as given, except for algorithms that the request gives
    /// itself.
    ///
    /// - Parameter isSameFile: Whether the request continues this part wherever it gets the bytes from. Otherwise it does if
    ///   the part has its URL.
    /// - Returns: Whether the manifest is of the same file.
    mutating func inherit(_ header: Manifest.Header, of source: SourceURL, isSameFile: Bool) -> Bool {
        let text = source.resourceText
        guard isSameFile || header.recordedSources.contains(where: { RecordedSource.resourceText(of: $0.url) == text })
        else { return false }
        for digest in header.digests.compactMap({ ExpectedDigest($0) })
        where !self.recorded.contains(where: { $0.algorithm == digest.algorithm }) {
            self.recorded.append(digest)
        }
        return true
    }

    /// Whether a manifest has digests that were given and all of them still apply. They identify the file independently of its
    /// URL.
    func pins(_ header: Manifest.Header) -> Bool {
        let known = Set(header.digests)
        return !known.isEmpty && known.isSubset(of: self.recorded.map(\.description))
    }
}
