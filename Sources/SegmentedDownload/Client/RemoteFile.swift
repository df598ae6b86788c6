import SegmentedDownloadCore

/// What a server reports about a file, without the file's content.
///
/// It is encoded with the names that `segdl probe --json` uses, but with the queries of URLs. A decoded one lacks what
/// ``FileCheck/beginRepair(from:as:)`` needs for a repair with piece digests: probe the file again for that.
public struct RemoteFile: Codable, Hashable, Sendable {
    /// The requested URL, safe to show.
    public let source: String
    /// The targets of the redirects in order, safe to show.
    public let redirects: [String]
    /// The HTTP status of the last response.
    public let status: Int
    /// The complete length in bytes; `nil` if the server does not state it.
    public let length: Int64?
    /// Whether the server supports range requests. If not, one connection fetches the file, and an interrupted download
    /// starts over.
    public let supportsRanges: Bool
    /// The entity tag or modification date with its kind, safe to show; `nil` if there is none.
    public let validator: String?
    /// The digest of the whole file that the server states (RFC 9530).
    public let digest: ExpectedDigest?
    /// The media type; `nil` if the server does not state it.
    public let type: String?
    /// The file name that a download would use.
    public let name: String
    /// Other sources that the server links to (RFC 6249), best first, without duplicates, at most 200.
    ///
    /// Only the server claims that they have the same bytes. As ``DownloadRequest/mirrors`` they are compared with each
    /// other.
    public let duplicates: [SourceURL]
    /// The URL of a metalink of the file that the server links to.
    public let metalink: SourceURL?
    /// Nil if the description was decoded.
    var resource: RemoteResource?

    private enum CodingKeys: String, CodingKey {
        case redirects, status, validator, digest, type, name, duplicates, metalink
        case source = "url"
        case length = "bytes_total"
        case supportsRanges = "ranges"
    }
}
