import HTTPTypes
import SegmentedDownloadCore

extension DownloadRequest {
    /// Looks whether a group would take the request, without adding it: what ``DownloadGroup/add(_:)`` throws for a request, this
    /// throws, and nothing else. Whether there is such a file, and room for it, is found out when it runs.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if a field's name or value is malformed, if a field is one that the downloader
    ///   sets itself, or if ``id`` and ``userInfo`` together are longer than a manifest keeps (64 KiB).
    public func validate() throws(DownloadError) {
        _ = try self.validFields()
    }

    /// The fields as they are sent, once the request is known to be valid.
    func validFields() throws(DownloadError) -> HTTPFields {
        try self.checkLabel()
        try self.credentials?.validate()
        var fields = HTTPFields()
        for (text, value) in self.fields {
            guard let name = HTTPField.Name(text) else {
                throw DownloadError(.usage, "\"\(text.printable)\" is no field name")
            }
            guard HTTPField.isValidValue(value) else {
                throw DownloadError(
                    .usage, "the value given for \(name.rawName) holds a line break or control character")
            }
            guard !Self.ownFields.contains(name.canonicalName) else {
                throw DownloadError(.usage, "\(name.rawName) is set by the downloader and cannot be given")
            }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }

    /// Fields whose value follows from the range asked for, or frames the message.
    private static let ownFields = [
        "range", "if-range", "if-none-match", "host", "content-length", "transfer-encoding", "accept-encoding",
        "connection",
    ]

    private func checkLabel() throws(DownloadError) {
        let length = self.label(inheriting: nil).length
        guard length <= Manifest.Label.lengthMaximum else {
            throw DownloadError(
                .usage,
                "id and userInfo have \(length) bytes, and \(Manifest.Label.lengthMaximum) can be kept in the manifest")
        }
    }
}
