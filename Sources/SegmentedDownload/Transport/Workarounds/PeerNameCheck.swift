import NIOCore
import NIOHTTP1
import NIOSSL
import SegmentedDownloadCore

/// Rejects requests to a server whose certificate does not cover the requested host.
///
/// RFC 9525, section 6.1 requires a comparison with the name that the client was given.
///
/// Workaround: swift-nio-ssl also accepts a certificate for the *address* that a name resolved to. An attacker who
/// controls name resolution and has a certificate for its own address could impersonate any host. No upstream issue
/// yet; `validIdentityForService` would have to ignore addresses if it has a name.
final class PeerNameCheck: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private let names: CertificateNames
    /// The last host that was verified.
    private var known: String?

    init(_ certificate: NIOSSLCertificate) {
        self.names = CertificateNames(certificate)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .head(let head) = Self.unwrapOutboundIn(data) {
            let host = Self.host(of: head)
            if self.known != host, let failure = self.names.failure(for: host) {
                promise?.fail(failure)
                context.fireErrorCaught(failure)
                context.close(promise: nil)
                return
            }
            self.known = host
        }
        context.write(data, promise: promise)
    }

    /// The `Host` field without its port.
    private static func host(of head: HTTPRequestHead) -> String {
        let field = head.headers.first(name: "host") ?? ""
        guard let colon = field.lastIndex(of: ":"), !field[colon...].contains("]") else { return field }
        return String(field[..<colon])
    }
}

/// The names and addresses that a certificate covers.
struct CertificateNames {
    private let names: [String]
    private let addresses: [[UInt8]]

    init(names: [String], addresses: [[UInt8]] = []) {
        self.names = names.map { $0.lowercased() }
        self.addresses = addresses
    }

    init(_ certificate: NIOSSLCertificate) {
        var names: [String] = []
        var addresses: [[UInt8]] = []
        for name in certificate._subjectAlternativeNames() {
            switch name.nameType {
            case .dnsName: names.append(String(decoding: Array(name.contents), as: UTF8.self))
            case .ipAddress: addresses.append(Array(name.contents))
            default: break
            }
        }
        self.init(names: names, addresses: addresses)
    }

    /// Whether the certificate covers a host.
    ///
    /// An address must match exactly. A name matches itself, or a wildcard in place of its first label (RFC 9525,
    /// section 6.3). A certificate without alternative names is accepted here, because NIOSSL has compared its common
    /// name.
    func cover(_ host: String) -> Bool {
        guard !self.names.isEmpty || !self.addresses.isEmpty else { return true }
        if let address = IPAddress.bytes(of: host) { return self.addresses.contains(address) }
        let bare = host.lowercased()
        let name = bare.hasSuffix(".") ? String(bare.dropLast()) : bare
        let parent = name.firstIndex(of: ".").map { String(name[$0...]) }
        return self.names.contains { candidate in
            candidate == name || parent.map { candidate == "*\($0)" && $0.dropFirst().contains(".") } ?? false
        }
    }

    /// The failure if the certificate does not cover a host, else `nil`.
    func failure(for host: String) -> DownloadError? {
        guard !self.cover(host) else { return nil }
        return DownloadError(
            .tls, "\(host.printable): the certificate is for another host (\(self.text.printable))",
            remedy: .skipNameCheck)
    }

    private var text: String {
        let addresses = self.addresses.map { $0.map { "\($0)" }.joined(separator: $0.count == 4 ? "." : ":") }
        return (self.names + addresses).joined(separator: ", ")
    }
}
