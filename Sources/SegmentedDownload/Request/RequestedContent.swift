import SegmentedDownloadCore

/// What a request is for: the resource, what selects its representation, and everything that the user stated about the file.
///
/// A completion counts for the request that it was started with, and for no other, unless ``covers(_:)`` is true.
struct RequestedContent: Hashable, Sendable {
    private let resource: String
    private let part: DownloadOptions.Part?
    private let selection: RequestSelection.Values
    private let digests: Set<ExpectedDigest>
    private let length: Int64?
    private let pieces: PieceDigests?

    /// - Parameter selection: What the request selects the representation with, besides its URL.
    init(_ request: DownloadRequest, _ selection: RequestSelection.Values) {
        self.resource = request.source.resourceText
        self.part = request.part
        self.selection = selection
        self.digests = Set(request.digests)
        self.length = request.lengthExpected
        self.pieces = request.pieceDigests
    }

    /// Whether this request's complete file also satisfies another request: it is of the same resource, and everything that the
    /// other request states was verified.
    func covers(_ other: RequestedContent) -> Bool {
        self.resource == other.resource && self.part == other.part && self.selection == other.selection
            && other.digests.isSubset(of: self.digests) && (other.length == nil || other.length == self.length)
            && (other.pieces == nil || other.pieces == self.pieces)
    }
}
