import NIOCore
import SegmentedDownloadCore

/// Where a host is to be found, instead of what name servers say.
public struct HostAddress: Hashable, Sendable {
    let host: String
    let port: Int
    let address: String

    /// - Parameter text: `HOST:PORT:ADDRESS`, as curl has it; an IPv6 address may stand in brackets.
    /// - Throws: ``DownloadError`` with code `usage`.
    public init(_ text: String) throws(DownloadError) {
        let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, !parts[0].isEmpty, let port = Int(parts[1]), (1...65535).contains(port) else {
            throw DownloadError(.usage, "\"\(text.printable)\" is not HOST:PORT:ADDRESS")
        }
        let bare =
            parts[2].hasPrefix("[") && parts[2].hasSuffix("]") ? String(parts[2].dropFirst().dropLast()) : parts[2]
        guard (try? SocketAddress(ipAddress: bare, port: port)) != nil else {
            throw DownloadError(.usage, "\"\(text.printable)\" names no address after host and port")
        }
        self.host = parts[0].lowercased()
        self.port = port
        self.address = bare
    }
}
