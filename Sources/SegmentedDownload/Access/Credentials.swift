#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What an origin is shown to be let in.
///
/// Sent without being asked for, to the origin it is for and to no other. Nothing that describes it shows the secret.
public enum Credentials: Hashable, Sendable, CustomStringConvertible {
    /// A user's name, which holds no colon, and password (RFC 7617).
    case basic(user: String, password: String)
    /// A token (RFC 6750).
    case bearer(token: String)

    /// The `Authorization` field's value.
    var fieldValue: String {
        switch self {
        case .basic(let user, let password): "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
        case .bearer(let token): "Bearer \(token)"
        }
    }

    public var description: String {
        switch self {
        case .basic: "basic credentials"
        case .bearer: "a bearer token"
        }
    }

    /// - Throws: ``DownloadError`` with code `usage` where a field could not hold them.
    func validate() throws(DownloadError) {
        switch self {
        case .basic(let user, _):
            guard !user.contains(":") else {
                throw DownloadError(.usage, "a user name cannot hold a colon (RFC 7617)")
            }
        case .bearer(let token):
            guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw DownloadError(.usage, "a bearer token is letters, digits and punctuation, without spaces")
            }
        }
    }
}
