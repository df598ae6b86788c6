public import SystemPackage

extension Metalink {
    /// A request for every file, in order. The file's sources become mirrors of each other; its length and all its
    /// digests are verified, or the digests of its pieces if it has no other.
    ///
    /// - Parameter directory: The directory that the files' paths are relative to.
    public func requests(in directory: FilePath) -> [DownloadRequest] {
        self.files.map { file in
            var request = DownloadRequest(file.sources[0], to: .file(directory.appending(file.path)))
            request.mirrors = Array(file.sources.dropFirst())
            request.lengthExpected = file.length
            request.digests = file.digests.strongestFirst
            request.pieceDigests = file.requiredPieces
            return request
        }
    }

    /// The file for a path: the one whose path is the longest suffix of it, else the only file of the document.
    public func file(at path: FilePath) -> File? {
        let text = path.string
        let named = self.files.filter { text == $0.path || text.hasSuffix("/" + $0.path) }
        return named.max { $0.path.utf8.count < $1.path.utf8.count } ?? (self.files.count == 1 ? self.files[0] : nil)
    }
}
