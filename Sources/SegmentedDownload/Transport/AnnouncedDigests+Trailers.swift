import HTTPTypes
import SegmentedDownloadCore

/// Digests in the trailer fields of a response (RFC 9110, section 6.5): a server that computes a digest while it sends
/// the bytes can state it only behind them.
extension AnnouncedDigests {
    /// The digests that trailer fields state: all of the representation, and the strongest of the body.
    static func trailing(_ fields: HTTPFields) -> (representation: [ExpectedDigest], content: ExpectedDigest?) {
        guard !fields.isEmpty else { return ([], nil) }
        return (
            Self.ofRepresentation(fields), Self.unambiguous(Self.dictionary(fields, Self.contentDigest)).first
        )
    }

    /// The algorithms of digests that trailers may state.
    static let trailing = Set(Self.dictionaryAlgorithms.map(\.algorithm) + Self.digestAlgorithms.values)

    /// Whether a response head says that the trailers will state a digest, such as `Trailer: Content-Digest`.
    static func follow(_ head: ResponseHead) -> Bool {
        head.fields[values: .trailer].joined(separator: ",").split(separator: ",").contains { name in
            let name = HTTPField.Name(String(name.filter { $0 != " " && $0 != "\t" }))
            return name != nil && [Self.reprDigest, Self.contentDigest, Self.digest].contains(name)
        }
    }
}
