import NIOCore
import SegmentedDownloadCore

/// A fixed address of a host, used instead of name resolution.
public struct HostAddress: Hashable, Sendable {
    let host: String
    let port: Int
    let address: String

    /// Parses `HOST:PORT:ADDRESS`, as in curl's `--resolve`. An IPv6 address may be in brackets.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the text is malformed.
    public init(_ text: String) throws(DownloadError) {
        let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, !parts[0].isEmpty, let port = Int(parts[1]), (1...65535).contains(port) else {
            throw DownloadError(.usage, "\"\(SourceURL.withoutSecrets(text))\" is not HOST:PORT:ADDRESS")
        }
        let bare =
            parts[2].hasPrefix("[") && parts[2].hasSuffix("]") ? String(parts[2].dropFirst().dropLast()) : parts[2]
        guard (try? SocketAddress(ipAddress: bare, port: port)) != nil else {
            throw DownloadError(.usage, "\"\(SourceURL.withoutSecrets(text))\" has no IP address after host and port")
        }
        self.host = parts[0].lowercased()
        self.port = port
        self.address = bare
    }
}
