#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A message from Git LFS to a custom transfer agent: one JSON object on a line.
///
/// See `docs/custom-transfers.md` of git-lfs. Unknown members are ignored.
struct TransferMessage: Decodable {
    enum Event: String, Decodable {
        case start = "init"
        case download, upload, terminate
    }

    /// How the server wants the object to be requested.
    struct Action: Decodable {
        var href: String
        var header: [String: String]?
    }

    var event: Event
    /// `download` or `upload`, of `init`.
    var operation: String?
    /// The SHA-256 of the object in hexadecimal.
    var oid: String?
    var size: Int64?
    /// Nil if there is no LFS server.
    var action: Action?

    /// 1 MiB: a message is a few hundred bytes, and a header field some kilobytes.
    static let lengthMax = 1 << 20
}

/// The answer to a message.
struct TransferReply: Encodable {
    struct Failure: Encodable {
        var code: Int32
        var message: String
    }

    var event: String?
    var oid: String?
    /// The file of a complete object. Git LFS moves it.
    var path: String?
    var bytesSoFar: Int64?
    var bytesSinceLast: Int64?
    var error: Failure?

    static func complete(_ oid: String, path: String) -> Self { Self(event: "complete", oid: oid, path: path) }
    static func failed(_ oid: String, _ code: ExitCode, _ message: String) -> Self {
        Self(event: "complete", oid: oid, error: Failure(code: code.rawValue, message: message))
    }
    static func progress(_ oid: String, done: Int64, since: Int64) -> Self {
        Self(event: "progress", oid: oid, bytesSoFar: done, bytesSinceLast: since)
    }

    /// The object on a line.
    var line: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else {
            preconditionFailure("an answer of strings and numbers is JSON")
        }
        return String(decoding: data, as: UTF8.self) + "\n"
    }
}
