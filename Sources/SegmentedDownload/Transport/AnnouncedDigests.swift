import HTTPTypes
import RawStructuredFieldValues
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a response says the digests of its bytes are (RFC 9530). What is malformed, or of an unknown algorithm, says nothing.
struct AnnouncedDigests: Hashable, Sendable {
    /// Of the whole file, also where only a part of it is sent: `Repr-Digest`.
    var representation: ExpectedDigest?
    /// Of the bytes of this response: `Content-Digest`.
    var content: ExpectedDigest?

    init(_ fields: HTTPFields) {
        self.representation = Self.digest(fields[Self.reprDigest])
        self.content = Self.digest(fields[Self.contentDigest])
    }

    /// RFC 9530 §2 and §3.
    private static let reprDigest = HTTPField.Name("Repr-Digest")
    private static let contentDigest = HTTPField.Name("Content-Digest")

    /// The registered algorithms that are not broken (RFC 9530 §5), the cheaper one first: one is enough.
    private static let algorithms: [(key: String, algorithm: ExpectedDigest.Algorithm)] = [
        ("sha-256", .sha256), ("sha-512", .sha512),
    ]

    private static func digest(_ field: String?) -> ExpectedDigest? {
        guard let field else { return nil }
        var parser = StructuredFieldValueParser(Array(field.utf8))
        guard let members = try? parser.parseDictionaryFieldValue() else { return nil }
        for (key, algorithm) in Self.algorithms {
            guard case .item(let item)? = members[key], case .undecodedByteSequence(let text) = item.rfc9651BareItem,
                let bytes = Data(base64Encoded: text)
            else { continue }
            if let digest = ExpectedDigest(algorithm, hex: bytes.hex) { return digest }
        }
        return nil
    }
}

extension HTTPFields {
    fileprivate subscript(name: HTTPField.Name?) -> String? { name.flatMap { self[$0] } }
}
