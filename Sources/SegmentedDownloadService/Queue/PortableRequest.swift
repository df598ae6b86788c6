package import SegmentedDownload
package import SystemPackage

/// A request with its options and its secrets, for another process of the same user.
package struct PortableRequest: Codable, Sendable {
    private let record: RecordedRequest
    private let secrets: RequestSecrets

    /// - Parameter directory: Relative destinations are resolved against it.
    /// - Throws: ``DownloadError`` with code `usage` if the request goes to a descriptor.
    package init(_ request: DownloadRequest, in directory: FilePath) throws(DownloadError) {
        var request = request
        request.destination = request.destination.resolved(in: directory)
        guard let path = request.destination.path else {
            throw DownloadError(.usage, "a queue cannot write to a descriptor")
        }
        self.record = RecordedRequest(request, path: path.string, hasName: false)
        self.secrets = RequestSecrets(request)
    }

    /// - Throws: ``DownloadError`` with code `usage` if the value was altered so that it cannot be fetched.
    package func request() throws(DownloadError) -> DownloadRequest {
        var request = try self.record.request()
        self.secrets.complete(&request)
        return request
    }
}
