extension Metalink {
    /// A request for every file, in order. The file's sources become mirrors of each other; its length and strongest
    /// digest are verified.
    ///
    /// - Parameter directory: The directory that the files' paths are relative to.
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
