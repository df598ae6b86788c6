#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Credentials for an origin.
///
/// They are sent without waiting for a challenge, and only to the origin they are for. Descriptions do not contain the
/// secret.
public enum Credentials: Hashable, Sendable, CustomStringConvertible {
    /// A user name, which must not contain a colon, and a password (RFC 7617).
    case basic(user: String, password: String)
    /// A token (RFC 6750).
    case bearer(token: String)

    /// The value of the `Authorization` field.
    var fieldValue: String {
        switch self {
        case .basic(let user, let password): "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
        case .bearer(let token): "Bearer \(token)"
        }
    }

    /// Reads a value of `Authorization` with a user name and a password; nil for another one.
    init?(basic value: String) {
        guard value.lowercased().hasPrefix("basic "),
            let bytes = Data(base64Encoded: value.dropFirst(6).trimmingPrefix { $0 == " " }.description),
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        self = .basic(
            user: String(decoding: bytes[..<colon], as: UTF8.self),
            password: String(decoding: bytes[(colon + 1)...], as: UTF8.self))
    }

    public var description: String {
        switch self {
        case .basic: "basic credentials"
        case .bearer: "a bearer token"
        }
    }

    /// Checks that the credentials can be sent in a field.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if they cannot.
    package func validate() throws(DownloadError) {
        switch self {
        case .basic(let user, _):
            guard !user.contains(":") else {
                throw DownloadError(.usage, "a user name cannot contain a colon (RFC 7617)")
            }
        case .bearer(let token):
            guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw DownloadError(.usage, "a bearer token is letters, digits and punctuation, without spaces")
            }
        }
    }
}
