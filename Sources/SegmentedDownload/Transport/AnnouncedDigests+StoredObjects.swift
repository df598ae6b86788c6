import HTTPTypes
import SegmentedDownloadCore

/// What object stores say of the objects they have. That is of the file where the object is sent as it is stored.
extension AnnouncedDigests {
    private static let googleHash = HTTPField.Name("x-goog-hash")
    private static let googleEncoding = HTTPField.Name("x-goog-stored-content-encoding")
    private static let googleLength = HTTPField.Name("x-goog-stored-content-length")

    /// Google Cloud Storage: `crc32c` and `md5` in base64, of the stored object, whatever part of it is sent; composite objects have no
    /// MD5 (its documentation, "Hashes and ETags").
    ///
    /// An object stored with gzip is sent without it to whoever does not accept it ("Transcoding of gzip-compressed files"). The
    /// store says how an object is stored, `identity` for no coding ("HTTP headers for the XML API"); where that is not
    /// what is sent, or is not said, so by somebody in between, the digest says nothing.
    static func googleCloud(_ fields: HTTPFields, of resource: RemoteResource) -> [ExpectedDigest] {
        guard fields.value(Self.googleEncoding)?.lowercased() == resource.contentEncoding ?? "identity" else {
            return []
        }
        if let stored = fields.value(Self.googleLength), let length = resource.completeLength, Int64(stored) != length {
            return []
        }
        return Self.list(fields.value(Self.googleHash), ["md5": .md5, "crc32c": .crc32c])
    }

    private static let amazonType = HTTPField.Name("x-amz-checksum-type")
    private static let amazonChecksums = ExpectedDigest.Algorithm.allCases.map { algorithm in
        (algorithm: algorithm, name: HTTPField.Name("x-amz-checksum-\(algorithm.rawValue)"))
    }

    /// Amazon S3, where the request has `x-amz-checksum-mode: ENABLED`: base64 of what was computed when the object was stored ("Checking
    /// object integrity in Amazon S3").
    ///
    /// - Of an object that came in parts it may be computed from theirs: of type `COMPOSITE`, with a hyphen and their number behind it.
    /// - With a 206 it may be a part's, and for `bytes=0-`, though that is everything, the composite one comes without its
    ///   number (boto/botocore#3346). So there the type must say that it is of the full object.
    static func amazonS3(_ fields: HTTPFields, of response: RangeResponse) -> [ExpectedDigest] {
        guard response.hasAllBytes, response.resource?.contentEncoding == nil else { return [] }
        let isRange = if case .partial = response { true } else { false }
        let type = fields.value(Self.amazonType)
        guard type == "FULL_OBJECT" || type == nil && !isRange else { return [] }
        return Self.amazonChecksums.compactMap { ExpectedDigest($0.algorithm, base64: fields.value($0.name)) }
    }
}
