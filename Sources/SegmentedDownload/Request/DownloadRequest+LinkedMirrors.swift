extension DownloadRequest {
    /// 8: samples are asked of each before it helps, and who names hundreds may name them to nobody's good.
    static let linkedMirrorsMax = 8

    /// Adds the mirrors that a server names in `Link` fields (RFC 6249), the best 8 of them, and holds the file to the digest that it says:
    /// what they bring is judged by it. Without a SHA-256 or SHA-512, the server's or the request's, nothing is added; neither are `http`
    /// mirrors to a source over `https`. They are not told who asks.
    ///
    /// - Parameter remote: what the request's source has, as ``DownloadClient/probe(_:)`` found it.
    public mutating func addMirrors(named remote: RemoteFile) {
        let known = self.digests.contains { $0.isOfContent }
        guard known || remote.digest?.isOfContent == true else { return }
        let found = remote.duplicates.filter { mirror in
            mirror.credentials == nil && !self.sources.contains(mirror)
                && (mirror.origin.scheme == "https" || self.source.origin.scheme == "http")
        }.prefix(Self.linkedMirrorsMax)
        guard !found.isEmpty else { return }
        if !known, let digest = remote.digest { self.digests.append(digest) }
        self.mirrors += found
        self.foreignSources.formUnion(found.filter { $0.origin != self.source.origin })
    }
}
