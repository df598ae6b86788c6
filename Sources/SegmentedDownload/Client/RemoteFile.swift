import SegmentedDownloadCore

/// What a server says of a file, without the file.
public struct RemoteFile: Hashable, Sendable {
    /// The source, safe to show.
    public let source: String
    /// Where it led, safe to show: the targets of redirects, in their order.
    public let redirects: [String]
    /// The HTTP status of the last answer.
    public let status: Int
    /// Absent where the server does not say.
    public let length: Int64?
    /// Whether parts of it can be asked for: if not, one connection fetches it, and what was interrupted begins anew.
    public let takesRanges: Bool
    /// The entity tag or date that tells versions apart, with the kind before it; absent if there is none.
    public let validator: String?
    /// The digest that the server says it has.
    public let digest: ExpectedDigest?
    /// The media type.
    public let type: String?
    /// What the file would be called.
    public let name: String
    /// Other sources of the same bytes that the server names (RFC 6249), the best one first, none twice and 200 at most. Nothing but its
    /// word says that they are: as ``DownloadRequest/mirrors`` they are held to each other's bytes.
    public let duplicates: [SourceURL]
    /// Where the server says that a metalink of the file is.
    public let metalink: SourceURL?
    let resource: RemoteResource
}
