extension DownloadRequest {
    /// 8: each mirror is sampled before it is used, and a server may link to hundreds.
    static let linkedMirrorsMax = 8

    /// Adds mirrors that the server names in `Link` fields (RFC 6249), the best 8, together with the digest that the
    /// server states.
    ///
    /// Nothing is added unless the request or the server has a SHA-256 or SHA-512, because the digest is what verifies
    /// the bytes of such mirrors. If the source uses `https`, mirrors that use `http` are ignored. Fields and
    /// credentials are not sent to mirrors of another origin.
    ///
    /// - Parameter remote: The result of ``DownloadClient/probe(_:)`` for the request.
    public mutating func addMirrors(named remote: RemoteFile) {
        let known = self.digests.contains { $0.isCollisionResistant }
        guard known || remote.digest?.isCollisionResistant == true else { return }
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
