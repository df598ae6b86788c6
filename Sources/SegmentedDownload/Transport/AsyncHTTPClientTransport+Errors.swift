import AsyncHTTPClient
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
        case let error as NIOSSLExtraError:
            return DownloadError(
                .tls, "\(host): the certificate is for another host (\("\(error)".printable))", remedy: .trustAuthority)
        case let error as BoringSSLError:
            return DownloadError(.tls, "\(host): \("\(error)".printable)")
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

    private static func clientFailure(_ error: HTTPClientError, host: String) -> DownloadError {
        switch error {
        case .connectTimeout:
            DownloadError(.network, "\(host): no connection within the connect timeout", isTransient: true)
        case .proxyAuthenticationRequired:
            DownloadError(
                .auth, "\(host) requires credentials", remedy: .giveProxyCredentials, status: 407)
        case .invalidProxyResponse:
            DownloadError(.network, "\(host): the proxy did not connect", isTransient: true)
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

    private static func tlsFailure(_ error: NIOSSLError, host: String) -> DownloadError {
        switch error {
        case .uncleanShutdown:
            return DownloadError(
                .network, "\(host) closed the connection before the response was complete", isTransient: true)
        case .handshakeFailed(.sslError(let stack)):
            guard !stack.contains(.eofDuringHandshake) else {
                return DownloadError(
                    .tls, "\(host) broke off the TLS handshake", hint: "If it speaks plain HTTP there, write http://",
                    isTransient: true)
            }
            let isDistrusted = stack.contains { $0.isDistrustedCertificate }
            let why = isDistrusted ? "the certificate is not trusted" : "\(stack)".printable
            return DownloadError(.tls, "\(host): \(why)", remedy: .trustAuthority)
        case .handshakeFailed(.syscallError), .handshakeFailed(.zeroReturn):
            return DownloadError(.tls, "\(host) broke off the TLS handshake", isTransient: true)
        default:
            return DownloadError(.tls, "\(host): \("\(error)".printable)", remedy: .trustAuthority)
        }
    }
}
