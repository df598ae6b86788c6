import HTTPTypes
import RawStructuredFieldValues
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The digests that a response states for its bytes. Malformed values and unknown algorithms are ignored.
///
/// A digest applied to the wrong bytes would reject a correct file, so a field is used only where its definition is
/// unambiguous. Digests of stored objects are in `AnnouncedDigests+StoredObjects.swift`, those of redirects in
/// ``LinkedFile``.
package struct AnnouncedDigests: Hashable, Sendable {
    /// The digests of the whole file, even if only a part of it is sent: one for each algorithm, the strongest first.
    let representation: [ExpectedDigest]
    /// The digest of this response's body (`Content-Digest`).
    let content: ExpectedDigest?

    /// Reads a response head.
    ///
    /// - Parameters:
    ///   - linked: The file that the preceding redirect described.
    init(_ head: ResponseHead, of response: RangeResponse, linked: LinkedFile? = nil) {
        let fields = head.fields
        // The digest in an error response is that of the error text.
        guard let resource = response.resource else {
            // A 304 states digests of the file that the request named, and no body.
            if case .notModified = response {
                self.representation = Self.unambiguous(Self.ofRepresentation(fields))
            } else {
                self.representation = []
            }
            self.content = nil
            return
        }
        let content = Self.unambiguous(Self.dictionary(fields, Self.contentDigest)).first
        self.content = content
        var said = Self.ofRepresentation(fields)
        if response.hasAllBytes, let digest = ExpectedDigest(.md5, base64: fields.value(Self.contentMD5)) {
            said.append(digest.stated(in: "Content-MD5"))
        }
        said += Self.googleCloud(fields, of: resource)
        said += Self.amazonS3(fields, of: response)
        if let linked, linked.isLinked(resource) { said.append(linked.digest) }
        let representation = Self.unambiguous(said)
        // The content of a response with all bytes is the file. So its digest also applies if the body is not read to its end.
        // It does not contradict the others: an intermediary that has changed the content may have stated it.
        if let content, response.hasAllBytes, !representation.contains(where: { $0.algorithm == content.algorithm }) {
            self.representation = Self.unambiguous(representation + [content])
        } else {
            self.representation = representation
        }
    }

    static func ofRepresentation(_ fields: HTTPFields) -> [ExpectedDigest] {
        Self.dictionary(fields, Self.reprDigest) + Self.list(fields, Self.digest, Self.digestAlgorithms)
    }

    /// RFC 9530, section 3: of the selected representation, regardless of the part that is sent.
    static let reprDigest = HTTPField.Name("Repr-Digest")
    /// RFC 9530, section 2: of the bytes that are sent.
    static let contentDigest = HTTPField.Name("Content-Digest")
    /// RFC 3230, section 4.3.2, obsoleted by RFC 9530: of the whole instance, which corresponds to `Repr-Digest`.
    static let digest = HTTPField.Name("Digest")
    /// RFC 2616, section 14.15: of the entity body. In a 206 some servers state the part's digest and some the file's,
    /// so it is used only if the response has all bytes.
    private static let contentMD5 = HTTPField.Name("Content-MD5")

    /// The algorithms registered for RFC 9530 that are not broken (section 5).
    static let dictionaryAlgorithms: [(key: String, algorithm: ExpectedDigest.Algorithm)] = [
        ("sha-256", .sha256), ("sha-512", .sha512),
    ]
    /// The algorithms of RFC 3230, section 4.1.1, and RFC 5843, section 2, in lower case.
    static let digestAlgorithms: [String: ExpectedDigest.Algorithm] = [
        "sha-256": .sha256, "sha-512": .sha512, "sha": .sha1, "md5": .md5,
    ]

    /// A digest for each algorithm, the strongest first. Contradictory digests of one algorithm are ignored.
    static func unambiguous(_ said: [ExpectedDigest]) -> [ExpectedDigest] {
        ExpectedDigest.Algorithm.byTrust.compactMap { algorithm in
            let digests = said.filter { $0.algorithm == algorithm }
            return digests.first.flatMap { first in digests.allSatisfy { $0 == first } ? first : nil }
        }
    }

    /// Parses a structured dictionary of byte sequences (RFC 9651, section 3.2).
    static func dictionary(_ fields: HTTPFields, _ name: HTTPField.Name?) -> [ExpectedDigest] {
        guard let name, let field = fields.value(name) else { return [] }
        var parser = StructuredFieldValueParser(Array(field.utf8))
        guard let members = try? parser.parseDictionaryFieldValue() else { return [] }
        return Self.dictionaryAlgorithms.compactMap { key, algorithm in
            guard case .item(let item)? = members[key], case .undecodedByteSequence(let text) = item.rfc9651BareItem
            else { return nil }
            return ExpectedDigest(algorithm, base64: text)?.stated(in: name.rawName)
        }
    }

    /// Parses a list of `name=base64`. Names are case-insensitive.
    static func list(
        _ fields: HTTPFields, _ name: HTTPField.Name?, _ algorithms: [String: ExpectedDigest.Algorithm]
    ) -> [ExpectedDigest] {
        guard let name, let field = fields.value(name) else { return [] }
        return field.split(separator: ",").compactMap { member in
            let blanks: Set<Character> = [" ", "\t"]
            var member = member.drop { blanks.contains($0) }
            while let last = member.last, blanks.contains(last) { member.removeLast() }
            guard let end = member.firstIndex(of: "="), let algorithm = algorithms[member[..<end].lowercased()] else {
                return nil
            }
            return ExpectedDigest(algorithm, base64: String(member[member.index(after: end)...]))?
                .stated(in: name.rawName)
        }
    }
}

extension ExpectedDigest {
    /// Creates a digest from base64 (RFC 4648, section 4), with or without padding (RFC 9651, section 4.2.7); `nil` if the text is malformed or has the wrong length.
    init?(_ algorithm: Algorithm, base64 text: String?) {
        guard let text, let bytes = Data(base64Encoded: text.padded) else { return nil }
        self.init(algorithm, hex: bytes.hex)
    }
}

extension ExpectedDigest.Algorithm {
    /// The algorithms, strongest first; of two that are equally strong the cheaper one first. SHA-1 and MD5 are broken
    /// against deliberate collisions, but not against accidents. The CRCs miss one accident in 2^64 or 2^32.
    static let byTrust: [Self] = [.sha256, .sha512, .sha1, .md5, .crc64nvme, .crc32, .crc32c]

    /// Whether the algorithm is at least as strong as another.
    func isTrusted(asMuchAs other: Self) -> Bool {
        Self.byTrust.prefix { $0 != other }.contains(self) || self == other
    }
}

extension HTTPFields {
    /// A field's values joined by commas; `nil` if the field is absent or its name is invalid.
    func value(_ name: HTTPField.Name?) -> String? { name.flatMap { self[$0] } }
}

extension String {
    /// The text, with the padding of base64.
    fileprivate var padded: String { self + String(repeating: "=", count: (4 - self.utf8.count % 4) % 4) }
}
