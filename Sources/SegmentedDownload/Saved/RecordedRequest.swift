import SegmentedDownloadCore
import SystemPackage

/// The part of a request that is stored apart from the manifest: all but its name and its secrets.
///
/// A URL's query is stored, and may be secret.
package struct RecordedRequest: Codable, Hashable, Sendable {
    package let source: String
    private let mirrors: [String]
    /// Nil in values of earlier versions.
    private let foreignSources: [String]?
    /// The destination, as far as it is known.
    package let path: String
    /// Set while the response has not yet named the file.
    private let directory: String?
    private let nameTemplate: String?
    package let userInfo: [String: String]
    package let options: DownloadOptions
    private let pieceDigests: Metalink.PieceDigests?

    private enum CodingKeys: CodingKey {
        case source, mirrors, foreignSources, path, directory, nameTemplate, userInfo, pieceDigests
    }

    /// - Parameters:
    ///   - path: The destination's path, as far as it is known.
    ///   - hasName: Whether that is the path of the file, although the request only names a directory.
    package init(_ request: DownloadRequest, path: String, hasName: Bool) {
        self.source = request.source.string
        self.mirrors = request.mirrors.map(\.string)
        self.foreignSources = request.foreignSources.map(\.string).sorted()
        self.path = path
        switch request.destination {
        case .file, .descriptor, .stream: (self.directory, self.nameTemplate) = (nil, nil)
        case .directory(let directory, let template):
            (self.directory, self.nameTemplate) = hasName ? (nil, nil) : (directory.string, template?.text)
        }
        self.userInfo = request.userInfo
        self.options = request.options
        self.pieceDigests = request.pieceDigests
    }

    package init(_ download: Download) {
        self.init(download.request, path: download.job.path, hasName: download.job.hasName)
    }

    /// The request, without name, fields and credentials. Its destination is resolved already.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the value was altered so that it cannot be fetched.
    package func request() throws(DownloadError) -> DownloadRequest {
        let destination: DownloadRequest.Destination
        if let directory {
            var template: NameTemplate?
            if let text = self.nameTemplate { template = try NameTemplate(text) }
            destination = .directory(FilePath(directory), name: template)
        } else {
            destination = .file(FilePath(self.path))
        }
        var request = DownloadRequest(try SourceURL(self.source), to: destination)
        for mirror in self.mirrors { request.mirrors.append(try SourceURL(mirror)) }
        for source in self.foreignSources ?? [] { request.foreignSources.insert(try SourceURL(source)) }
        request.userInfo = self.userInfo
        request.options = self.options
        request.pieceDigests = self.pieceDigests
        return request
    }

    /// The options stand beside the value's own keys, and paths are strings.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.source = try values.decode(String.self, forKey: .source)
        self.mirrors = try values.decode([String].self, forKey: .mirrors)
        self.foreignSources = try values.decodeIfPresent([String].self, forKey: .foreignSources)
        self.path = try values.decode(String.self, forKey: .path)
        self.directory = try values.decodeIfPresent(String.self, forKey: .directory)
        self.nameTemplate = try values.decodeIfPresent(String.self, forKey: .nameTemplate)
        self.userInfo = try values.decode([String: String].self, forKey: .userInfo)
        self.options = try DownloadOptions(from: decoder)
        self.pieceDigests = try values.decodeIfPresent(Metalink.PieceDigests.self, forKey: .pieceDigests)
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(self.source, forKey: .source)
        try values.encode(self.mirrors, forKey: .mirrors)
        try values.encodeIfPresent(self.foreignSources, forKey: .foreignSources)
        try values.encode(self.path, forKey: .path)
        try values.encodeIfPresent(self.directory, forKey: .directory)
        try values.encodeIfPresent(self.nameTemplate, forKey: .nameTemplate)
        try values.encode(self.userInfo, forKey: .userInfo)
        try self.options.encode(to: encoder)
        try values.encodeIfPresent(self.pieceDigests, forKey: .pieceDigests)
    }
}
