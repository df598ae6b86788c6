/// As text, without user name and password. The query is included, and may be secret.
extension SourceURL: Codable {
    public init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        do {
            try self.init(value.decode(String.self))
        } catch let error as DownloadError {
            throw DecodingError.dataCorruptedError(in: value, debugDescription: error.message)
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(self.string)
    }
}
