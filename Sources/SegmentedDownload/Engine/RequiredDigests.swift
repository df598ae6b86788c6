import SegmentedDownloadCore

/// The digests that a file must have: those of the request, of its manifest, and of the server.
struct RequiredDigests: Hashable, Sendable {
    /// The request's digests, and those that the manifest of the same source records as given.
    private(set) var recorded: [ExpectedDigest]
    /// The whole-file digest of the latest response.
    private var latest: ExpectedDigest?
    /// The whole-file digest of the response that defined the resource, in this run or an earlier one.
    private var announced: ExpectedDigest?
    /// The whole-file digests that followed complete responses of this version, in their trailers.
    private var stated: [ExpectedDigest] = []

    /// Marks a digest in a manifest that the server announced.
    private static let announcedMark: Character = "~"

    init(_ requested: [ExpectedDigest]) {
        self.recorded = requested
    }

    /// All digests that the file must have.
    ///
    /// A digest of the server is ignored if the user gave a digest of an algorithm that is at least as strong.
    var all: [ExpectedDigest] {
        var all = self.recorded
        for digest in [self.announced].compactMap(\.self) + self.stated
        where !all.contains(digest)
            && !self.recorded.contains(where: { $0.algorithm.isTrusted(asMuchAs: digest.algorithm) })
        {
            all.append(digest)
        }
        return all
    }

    /// Adds whole-file digests from the trailers of a response.
    mutating func add(stated: [ExpectedDigest]) {
        self.stated += stated.filter { !self.stated.contains($0) }
    }

    /// Notes the whole-file digest of a response; `nil` if it has none.
    mutating func note(_ digest: ExpectedDigest?) {
        self.latest = digest
    }

    /// The digests as a manifest records them. The server's has a mark, because it belongs to this version of the file, and does not
    /// identify the file that the user wants.
    var stored: [String] {
        self.recorded.map(\.description) + (self.announced.map { ["\(Self.announcedMark)\($0)"] } ?? [])
    }

    /// Expects the digest of the latest response, which defines the resource.
    ///
    /// - Parameter isSameVersion: Whether bytes of an earlier response are kept, so that its digest applies too if the
    ///   latest has none: a response with a part of the file, or without content, may have none.
    mutating func expectLatest(isSameVersion: Bool) {
        self.announced = self.latest ?? (isSameVersion ? self.announced : nil)
        if !isSameVersion { self.stated = [] }
    }

    /// Adds the digests that a manifest of the same source records, except for algorithms that the request gives
    /// itself. The one that the server announced holds while bytes of the part are kept.
    mutating func inherit(_ header: Manifest.Header, of source: SourceURL) {
        let text = source.resourceText
        guard header.recordedSources.contains(where: { RecordedSource.resourceText(of: $0.url) == text }) else {
            return
        }
        for digest in header.digests.compactMap({ ExpectedDigest($0) })
        where !self.recorded.contains(where: { $0.algorithm == digest.algorithm }) {
            self.recorded.append(digest)
        }
        self.announced = Self.announced(header)
    }

    private static func announced(_ header: Manifest.Header) -> ExpectedDigest? {
        header.digests.lazy.filter { $0.first == Self.announcedMark }.compactMap {
            ExpectedDigest(String($0.dropFirst()))
        }
        .first
    }

    /// Whether a manifest has digests that were given and all of them still apply. They identify the file independently of its
    /// URL.
    func pins(_ header: Manifest.Header) -> Bool {
        let known = Set(header.digests.filter { $0.first != Self.announcedMark })
        return !known.isEmpty && known.isSubset(of: self.recorded.map(\.description))
    }
}
