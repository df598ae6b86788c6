import SegmentedDownloadCore

/// An object with the error's properties; those that are `nil` are absent.
extension DownloadError: Codable {
    private enum CodingKeys: String, CodingKey {
        case code, message, hint, remedy, status, errno
        case isTransient = "transient"
        case retryAfter = "retry_after"
    }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            Code(rawValue: try values.decode(String.self, forKey: .code)),
            try values.decode(String.self, forKey: .message),
            hint: try values.decodeIfPresent(String.self, forKey: .hint),
            remedy: try values.decodeIfPresent(String.self, forKey: .remedy).map { Remedy(rawValue: $0) },
            isTransient: try values.decode(Bool.self, forKey: .isTransient),
            status: try values.decodeIfPresent(Int.self, forKey: .status),
            errno: try values.decodeIfPresent(Int32.self, forKey: .errno),
            retryAfter: try values.decodeIfPresent(EncodedDuration.self, forKey: .retryAfter)?.value)
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(self.code.rawValue, forKey: .code)
        try values.encode(self.message, forKey: .message)
        try values.encodeIfPresent(self.hint, forKey: .hint)
        try values.encodeIfPresent(self.remedy?.rawValue, forKey: .remedy)
        try values.encode(self.isTransient, forKey: .isTransient)
        try values.encodeIfPresent(self.status, forKey: .status)
        try values.encodeIfPresent(self.errno, forKey: .errno)
        try values.encodeIfPresent(self.retryAfter.map { EncodedDuration($0) }, forKey: .retryAfter)
    }
}
