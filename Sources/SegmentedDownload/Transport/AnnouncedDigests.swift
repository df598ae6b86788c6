import HTTPTypes
import RawStructuredFieldValues
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a response says the digests of its bytes are. What is malformed, or of an unknown algorithm, says nothing.
///
/// Whoever believes a digest that is of something else refuses a right file. So each field counts only where its definition leaves no
/// other reading; what speaks of stored objects is in `AnnouncedDigests+StoredObjects.swift`, what a redirect says in ``LinkedFile``.
package struct AnnouncedDigests: Hashable, Sendable {
    /// Of the whole file, also where only a part of it is sent: the one that is trusted most.
    let representation: ExpectedDigest?
    /// Of the bytes of this response: `Content-Digest`.
    let content: ExpectedDigest?

    /// - Parameter linked: what the redirect that led to the response says of the file.
    init(_ head: ResponseHead, of response: RangeResponse, linked: LinkedFile? = nil) {
        let fields = head.fields
        // What comes with a refusal is about the text that explains it.
        guard let resource = response.resource else {
            self.representation = nil
            self.content = nil
            return
        }
        self.content = Self.mostTrusted(Self.dictionary(fields.value(Self.contentDigest)))
        var said = Self.dictionary(fields.value(Self.reprDigest))
        said += Self.list(fields.value(Self.digest), Self.digestAlgorithms)
        if response.hasAllBytes, let digest = ExpectedDigest(.md5, base64: fields.value(Self.contentMD5)) {
            said.append(digest)
        }
        said += Self.googleCloud(fields, of: resource)
        said += Self.amazonS3(fields, of: response)
        if let linked, linked.isLinked(resource) { said.append(linked.digest) }
        self.representation = Self.mostTrusted(said)
    }

    /// RFC 9530 §3: of the selected representation, whatever part of it is sent.
    private static let reprDigest = HTTPField.Name("Repr-Digest")
    /// RFC 9530 §2: of the bytes that are sent.
    private static let contentDigest = HTTPField.Name("Content-Digest")
    /// RFC 3230 §4.3.2, obsoleted by RFC 9530: of the whole instance, which is what `Repr-Digest` calls the representation.
    private static let digest = HTTPField.Name("Digest")
    /// RFC 2616 §14.15: of the entity-body. On a 206 some servers give the part's and some the file's; where the part is all
    /// of the file these are the same.
    private static let contentMD5 = HTTPField.Name("Content-MD5")

    /// The algorithms registered for RFC 9530 that are not broken (§5).
    private static let dictionaryAlgorithms: [(key: String, algorithm: ExpectedDigest.Algorithm)] = [
        ("sha-256", .sha256), ("sha-512", .sha512),
    ]
    /// RFC 3230 §4.1.1 and RFC 5843 §2, in lower case.
    private static let digestAlgorithms: [String: ExpectedDigest.Algorithm] = [
        "sha-256": .sha256, "sha-512": .sha512, "sha": .sha1, "md5": .md5,
    ]

    /// One is enough. Those of one algorithm that contradict each other are none.
    private static func mostTrusted(_ said: [ExpectedDigest]) -> ExpectedDigest? {
        for algorithm in ExpectedDigest.Algorithm.byTrust {
            let digests = said.filter { $0.algorithm == algorithm }
            if let first = digests.first, digests.allSatisfy({ $0 == first }) { return first }
        }
        return nil
    }

    /// The members of a dictionary of byte sequences (RFC 9651 §3.2).
    private static func dictionary(_ field: String?) -> [ExpectedDigest] {
        guard let field else { return [] }
        var parser = StructuredFieldValueParser(Array(field.utf8))
        guard let members = try? parser.parseDictionaryFieldValue() else { return [] }
        return Self.dictionaryAlgorithms.compactMap { key, algorithm in
            guard case .item(let item)? = members[key], case .undecodedByteSequence(let text) = item.rfc9651BareItem
            else { return nil }
            return ExpectedDigest(algorithm, base64: text)
        }
    }

    /// The members of a list of `name=base64`, whose names may be in either case.
    static func list(_ field: String?, _ algorithms: [String: ExpectedDigest.Algorithm]) -> [ExpectedDigest] {
        (field ?? "").split(separator: ",").compactMap { member in
            let blanks: Set<Character> = [" ", "\t"]
            var member = member.drop { blanks.contains($0) }
            while let last = member.last, blanks.contains(last) { member.removeLast() }
            guard let end = member.firstIndex(of: "="), let algorithm = algorithms[member[..<end].lowercased()] else {
                return nil
            }
            return ExpectedDigest(algorithm, base64: String(member[member.index(after: end)...]))
        }
    }
}

extension ExpectedDigest {
    /// Absent if the text is not base64 (RFC 4648 §4) of as many bytes as the algorithm has.
    init?(_ algorithm: Algorithm, base64 text: String?) {
        guard let text, let bytes = Data(base64Encoded: text) else { return nil }
        self.init(algorithm, hex: bytes.hex)
    }
}

extension ExpectedDigest.Algorithm {
    /// The one that tells most first; of two that tell the same the one that costs less. SHA-1 and MD5 are broken against whoever
    /// makes a file on purpose, but not by accident; the CRCs miss one accident in 2^64 and 2^32, and CRC-32 is computed anyway.
    static let byTrust: [Self] = [.sha256, .sha512, .sha1, .md5, .crc64nvme, .crc32, .crc32c]

    /// Whether a digest by this algorithm leaves nothing for one by another to tell.
    func isTrusted(asMuchAs other: Self) -> Bool {
        Self.byTrust.prefix { $0 != other }.contains(self) || self == other
    }
}

extension HTTPFields {
    /// A field's values, joined by commas; a name that is none has none.
    func value(_ name: HTTPField.Name?) -> String? { name.flatMap { self[$0] } }
}
