import HTTPTypes
import SegmentedDownloadCore

/// The file that a redirect leads to, as whoever redirects knows it: `X-Linked-Etag` and `X-Linked-Size` of the Hugging Face Hub.
///
/// The tag of a large file is its SHA-256, 64 hexadecimal digits; that of any other a Git hash, which has 40. The Hub's own client
/// holds files to it (huggingface_hub, `file_download.py`: `REGEX_SHA256`). The place the redirect leads to does not say it again.
package struct LinkedFile: Hashable, Sendable {
    let digest: ExpectedDigest
    /// In bytes.
    private let length: Int64

    private static let tag = HTTPField.Name("X-Linked-Etag")
    private static let size = HTTPField.Name("X-Linked-Size")
    private static let xetHash = HTTPField.Name("X-Xet-Hash")

    /// Absent where the redirect does not say both.
    init?(_ fields: HTTPFields) {
        guard let tag = fields.value(Self.tag).flatMap({ EntityTag(fieldValue: $0) }), !tag.isWeak,
            let digest = ExpectedDigest(.sha256, hex: tag.opaque),
            // As long, and the root of a tree of other hashes.
            fields.value(Self.xetHash)?.lowercased() != digest.hex,
            let length = fields.value(Self.size).flatMap({ Int64($0) })
        else { return nil }
        self.digest = digest
        self.length = length
    }

    /// Whether what came is that file, as far as its length tells, and in no coding of its own.
    func isLinked(_ resource: RemoteResource) -> Bool {
        resource.completeLength == self.length && resource.contentEncoding == nil
    }
}
