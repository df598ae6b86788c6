extension Metalink {
    /// A request for every file, in order: its sources as mirrors of each other, held to its length and its strongest digest.
    ///
    /// - Parameter directory: Where the files go, each with its path below it.
    public func requests(in directory: String) -> [DownloadRequest] {
        let slash = directory.isEmpty || directory.hasSuffix("/") ? "" : "/"
        return self.files.map { file in
            var request = DownloadRequest(file.sources[0], to: .file(directory + slash + file.path))
            request.mirrors = Array(file.sources.dropFirst())
            request.lengthExpected = file.length
            request.digests = file.digest.map { [$0] } ?? []
            return request
        }
    }
}
