import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Maps errors of the HTTP client, TLS and the system to failures.
extension AsyncHTTPClientTransport {
    /// The failure for an error. A cancellation stays a `CancellationError`.
    static func failure(_ error: any Error, host: String) -> any Error {
        switch error {
        case is CancellationError, is DownloadError: return error
        case let error as HTTPClientError where error == .cancelled: return CancellationError()
        case let error as HeadGuard.Refusal: return DownloadError(.protocol, "\(host) \(error.reason)")
        case let error as NIOConnectionError: return Self.connectionFailure(error)
        case let error as NIOSSLError: return Self.tlsFailure(error, host: host)
        case let error as NIOSSLExtraError: return Self.tlsFailure(error, host: host)
        case let error as BoringSSLError: return Self.tlsFailure(error, host: host)
        case is HeadBytes.StaleConnection:
            return DownloadError(.network, "\(host) closed the connection instead of answering", isTransient: true)
        case let error as HTTPParserError where error == .invalidEOFState:
            return DownloadError(
                .network, "\(host) closed the connection before the response was complete", isTransient: true)
        case let error as HTTPParserError:
            return DownloadError(.protocol, "\(host) does not speak HTTP (\("\(error)".printable))")
        case let error as IOError:
            let isMade = ![ECONNREFUSED, ENETUNREACH, EHOSTUNREACH].contains(error.errnoCode)
            return DownloadError(
                .network, "\(host): \(isMade ? "the connection broke" : "no connection") (\(Self.reason(error)))",
                isTransient: true,
                errno: error.errnoCode)
        case ChannelError.connectTimeout(_):
            return DownloadError(.network, "\(host): no connection within the connect timeout", isTransient: true)
        case let error as HTTPClientError: return Self.clientFailure(error, host: host)
        default:
            return DownloadError(.network, "\(host): \("\(error)".printable)", isTransient: true)
        }
    }

    /// The failure if a response comes from a proxy that did not forward the request: one that says so, with `Proxy-Status`
    /// (RFC 9209) or as Squid does.
    static func failure(_ head: ResponseHead, of proxy: Proxy, for url: SourceURL) -> DownloadError? {
        if head.status == 407 { return Self.proxyLoginFailure(head, of: proxy) }
        guard head.status >= 400 else { return nil }
        let own = HTTPField.Name("X-Squid-Error").flatMap { head.fields[$0] }
        let said = HTTPField.Name("Proxy-Status").flatMap { head.fields[$0] }
        guard let reason = own ?? said.flatMap({ $0.contains("error=") ? $0 : nil }) else { return nil }
        return DownloadError(
            .server, "the proxy \(proxy) answered \(head.status) (\(reason.printable)) for \(url.host)",
            status: head.status, retryAfter: RangeResponse.retryAfter(head)?.duration)
    }

    /// The failure if a proxy wants other credentials, or any.
    static func proxyLoginFailure(_ head: ResponseHead, of proxy: Proxy) -> DownloadError {
        let schemes = head.challenges.map(\.scheme)
        let asked = schemes.isEmpty ? "" : " (\(schemes.joined(separator: ", ").printable))"
        let isKnown = schemes.isEmpty || head.challenges.contains { $0.uses("Basic") || DigestChallenge($0) != nil }
        let what = proxy.user == nil || !isKnown ? "requires credentials" : "rejects the name or the password"
        return DownloadError(
            .auth, "the proxy \(proxy) \(what)\(asked)",
            hint: isKnown ? nil : "segdl has Basic and Digest logins only",
            remedy: isKnown ? .giveProxyCredentials : nil, status: 407)
    }

    private static func clientFailure(_ error: HTTPClientError, host: String) -> DownloadError {
        switch error {
        case .connectTimeout:
            DownloadError(.network, "\(host): no connection within the connect timeout", isTransient: true)
        case .tlsHandshakeTimeout:
            DownloadError(.tls, "\(host): no TLS handshake within the connect timeout", isTransient: true)
        case .remoteConnectionClosed:
            DownloadError(.network, "\(host) closed the connection before the response was complete", isTransient: true)
        default: DownloadError(.network, "\(host): \(error.shortDescription.printable)", isTransient: true)
        }
    }

    private static func connectionFailure(_ error: NIOConnectionError) -> DownloadError {
        let host = error.host.printable
        if error.connectionErrors.isEmpty {
            return DownloadError(.network, "\(host) was not found (name lookup failed)", isTransient: true)
        }
        let reasons = error.connectionErrors.map { failure in
            (failure.error as? IOError).map { Self.reason($0) } ?? "no connection within the connect timeout"
        }
        let distinct = reasons.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        return DownloadError(
            .network, "\(host) port \(error.port): \(distinct.joined(separator: ", "))", isTransient: true,
            errno: (error.connectionErrors.first?.error as? IOError)?.errnoCode)
    }

    /// The system's message, such as `connection refused`.
    private static func reason(_ error: IOError) -> String {
        String(cString: strerror(error.errnoCode)).lowercased().printable
    }
}
