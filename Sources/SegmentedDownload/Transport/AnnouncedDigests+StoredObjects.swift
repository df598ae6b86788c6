import HTTPTypes
import SegmentedDownloadCore

/// Digests that object stores report for stored objects. They apply to the response only if the object is sent as it is
/// stored.
extension AnnouncedDigests {
    private static let googleHash = HTTPField.Name("x-goog-hash")
    private static let googleEncoding = HTTPField.Name("x-goog-stored-content-encoding")
    private static let googleLength = HTTPField.Name("x-goog-stored-content-length")

    /// The digests that Google Cloud Storage reports: `crc32c` and `md5` in base64, for the whole stored object.
    ///
    /// Composite objects have no MD5. An object stored with gzip is decompressed for clients that do not accept gzip;
    /// its digest then does not apply to the response. It is therefore used only if `x-goog-stored-content-encoding` is
    /// present and equals the response's coding (`identity` for none). Source: Google Cloud Storage documentation,
    /// "Hashes and ETags", "Transcoding of gzip-compressed files", "HTTP headers for the XML API".
    static func googleCloud(_ fields: HTTPFields, of resource: RemoteResource) -> [ExpectedDigest] {
        guard fields.value(Self.googleEncoding)?.lowercased() == resource.contentEncoding ?? "identity" else {
            return []
        }
        if let stored = fields.value(Self.googleLength), let length = resource.wholeLength ?? resource.completeLength,
            Int64(stored) != length
        {
            return []
        }
        return Self.list(fields, Self.googleHash, ["md5": .md5, "crc32c": .crc32c])
    }

    private static let amazonType = HTTPField.Name("x-amz-checksum-type")
    private static let amazonChecksums = ExpectedDigest.Algorithm.allCases.map { algorithm in
        (algorithm: algorithm, name: HTTPField.Name("x-amz-checksum-\(algorithm.rawValue)"))
    }

    /// The digests that Amazon S3 reports in base64 if the request has `x-amz-checksum-mode: ENABLED`.
    ///
    /// - An object uploaded in parts may have a digest of the parts' digests: type `COMPOSITE`, a value with a hyphen
    ///   and the number of parts.
    /// - A 206 may have the digest of a part. For `bytes=0-` the composite digest comes without the number of parts
    ///   (boto/botocore#3346). So in a 206 the type must be `FULL_OBJECT`.
    ///
    /// Source: "Checking object integrity in Amazon S3".
    static func amazonS3(_ fields: HTTPFields, of response: RangeResponse) -> [ExpectedDigest] {
        guard response.hasAllBytes, response.resource?.contentEncoding == nil else { return [] }
        let isRange = if case .partial = response { true } else { false }
        let type = fields.value(Self.amazonType)
        guard type == "FULL_OBJECT" || type == nil && !isRange else { return [] }
        return Self.amazonChecksums.compactMap { algorithm, name in
            ExpectedDigest(algorithm, base64: fields.value(name))?.stated(in: name?.rawName ?? "")
        }
    }
}
