import HTTPTypes
import SegmentedDownloadCore

/// The file that a redirect of the Hugging Face Hub leads to, described by `X-Linked-Etag` and `X-Linked-Size`.
///
/// The tag of a large file is its SHA-256 in 64 hexadecimal digits; that of other files is a Git hash of 40. The target
/// does not repeat it. The Hub's own client verifies files against it (huggingface_hub, `file_download.py`:
/// `REGEX_SHA256`).
package struct LinkedFile: Hashable, Sendable {
    let digest: ExpectedDigest
    /// The length in bytes.
    private let length: Int64

    private static let tag = HTTPField.Name("X-Linked-Etag")
    private static let size = HTTPField.Name("X-Linked-Size")
    private static let xetHash = HTTPField.Name("X-Xet-Hash")

    /// Reads a redirect's fields; `nil` unless both fields are present and valid.
    init?(_ fields: HTTPFields) {
        guard let tag = fields.value(Self.tag).flatMap({ EntityTag(fieldValue: $0) }), !tag.isWeak,
            let digest = ExpectedDigest(.sha256, hex: tag.opaque),
            // A Xet hash has the same length but is the root of a hash tree.
            fields.value(Self.xetHash)?.lowercased() != digest.hex,
            let length = fields.value(Self.size).flatMap({ Int64($0) })
        else { return nil }
        self.digest = digest.stated(in: "X-Linked-Etag")
        self.length = length
    }

    /// Whether a response is that file: it has the same length and no content coding.
    func isLinked(_ resource: RemoteResource) -> Bool {
        (resource.wholeLength ?? resource.completeLength) == self.length && resource.contentEncoding == nil
    }
}
