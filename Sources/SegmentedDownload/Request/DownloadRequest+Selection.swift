import HTTPTypes
import SegmentedDownloadCore

extension DownloadRequest {
    /// What selects a representation of the source besides its URL: the user's fields and the name of the user, as a SHA-256.
    /// Empty if there are none.
    ///
    /// Passwords and tokens of ``credentials`` are not part of it, because they change while the user stays the same.
    package func selection(salt: [UInt8]) -> [UInt8] {
        let credentials = self.source.credentials ?? self.credentials
        guard !self.fields.isEmpty || credentials != nil else { return [] }
        // Values have no line breaks, see `validate()`.
        var text = salt
        switch credentials {
        case .basic(let user, _): text += Array("user \(user)\n".utf8)
        case .bearer: text += Array("bearer\n".utf8)
        case nil: break
        }
        let fields = self.fields.enumerated().sorted {
            ($0.element.name.canonicalName, $0.offset) < ($1.element.name.canonicalName, $1.offset)
        }
        for (_, field) in fields {
            text += Array("\(field.name.canonicalName):".utf8)
            field.withUnsafeBytesOfValue { text += $0 }
            text.append(UInt8(ascii: "\n"))
        }
        var digest = RunningDigest(.sha256)
        text.withUnsafeBytes { digest.update($0) }
        return digest.bytes
    }
}
