import NIOSSL
import SegmentedDownloadCore

/// Maps failures of TLS to sentences, with advice that fits the cause.
///
/// BoringSSL's own text has error codes and the path of a source file.
extension AsyncHTTPClientTransport {
    static func tlsFailure(_ error: NIOSSLError, host: String) -> DownloadError {
        switch error {
        case .uncleanShutdown, .shutdownFailed, .writeDuringTLSShutdown, .readInInvalidTLSState:
            return DownloadError(
                .network, "\(host) closed the connection before the response was complete", isTransient: true)
        case .handshakeFailed(.syscallError), .handshakeFailed(.zeroReturn):
            return DownloadError(.tls, "\(host) broke off the TLS handshake", isTransient: true)
        case .handshakeFailed(let error): return Self.tlsFailure(error, host: host)
        case .noCertificateToValidate, .unableToValidateCertificate: return Self.distrusted(host)
        default: return Self.tlsFailure(reasons: [], host: host)
        }
    }

    static func tlsFailure(_ error: NIOSSLExtraError, host: String) -> DownloadError {
        guard error == .failedToValidateHostname || error == .serverHostnameImpossibleToMatch else {
            return Self.tlsFailure(reasons: [], host: host)
        }
        return DownloadError(.tls, "\(host): the certificate is for another host", remedy: .skipNameCheck)
    }

    /// - Parameter error: Of the handshake, or an alert after it: a server of TLS 1.3 reads the client's certificate when
    ///   the handshake has ended for the client.
    static func tlsFailure(_ error: BoringSSLError, host: String) -> DownloadError {
        switch error {
        case .sslError(let stack) where stack.contains(.eofDuringHandshake):
            return DownloadError(
                .tls, "\(host) broke off the TLS handshake", hint: "If it speaks plain HTTP there, write http://",
                isTransient: true)
        case .sslError(let stack), .unknownError(let stack), .invalidSNIName(let stack), .failedToSetALPN(let stack):
            return Self.tlsFailure(reasons: stack.compactMap(\.reason), host: host)
        default: return Self.tlsFailure(reasons: [], host: host)
        }
    }

    /// The failure for BoringSSL's reasons, the first of which is the cause.
    static func tlsFailure(reasons: [String], host: String) -> DownloadError {
        for reason in reasons {
            let alert = Self.alertPrefixes.first { reason.hasPrefix($0) }.map { String(reason.dropFirst($0.count)) }
            let known = alert.map { Self.alertFailure($0, host: host) } ?? Self.ownFailure(reason, host: host)
            if let known { return known }
        }
        // Words such as `wrong curve`: better than nothing for an error that no rule above foresees.
        let words = reasons.first.map { " (\(Self.words($0)))" } ?? ""
        return DownloadError(.tls, "TLS with \(host) failed\(words)", hint: Self.incompatible)
    }

    /// BoringSSL names an alert from the server after the version that introduced it.
    private static let alertPrefixes = ["SSLV3_ALERT_", "TLSV1_ALERT_", "TLSV1_"]

    private static let incompatible =
        "The server or a device on the path may be faulty, or need what segdl's TLS library lacks: try another program"

    private static func words(_ reason: String) -> String {
        reason.lowercased().replacing("_", with: " ").printable
    }

    private static func distrusted(_ host: String) -> DownloadError {
        DownloadError(.tls, "\(host): the certificate is not trusted", remedy: .trustAuthority)
    }

    /// The failure for an alert that the server sent (RFC 8446, section 6.2).
    private static func alertFailure(_ alert: String, host: String) -> DownloadError {
        let words = Self.words(alert)
        switch alert {
        case "HANDSHAKE_FAILURE", "INSUFFICIENT_SECURITY":
            return DownloadError(
                .tls,
                "\(host) refused the TLS handshake (\(words)): it requires a cipher, a key exchange, a kind of key or "
                    + "a client certificate that segdl did not offer",
                hint: "segdl lacks DHE, CBC with SHA-384 and keys for RSA-PSS: if it requires them, use another "
                    + "program. Otherwise give a client certificate")
        case "PROTOCOL_VERSION", "INAPPROPRIATE_FALLBACK": return Self.versionFailure(host)
        case "UNRECOGNIZED_NAME":
            return DownloadError(
                .tls, "\(host) has no site of this name (TLS alert: \(words))", hint: "Check the host in the URL")
        case "NO_APPLICATION_PROTOCOL":
            return DownloadError(
                .tls, "\(host) does not speak HTTP/1.1 (TLS alert: \(words))", hint: "Check the port in the URL")
        case "CERTIFICATE_REQUIRED", "NO_CERTIFICATE":
            return DownloadError(.tls, "\(host) requires a client certificate", remedy: .giveCertificate)
        case "BAD_CERTIFICATE", "UNSUPPORTED_CERTIFICATE", "CERTIFICATE_REVOKED", "CERTIFICATE_EXPIRED",
            "CERTIFICATE_UNKNOWN", "UNKNOWN_CA", "ACCESS_DENIED":
            return DownloadError(
                .tls, "\(host) does not accept the client certificate, or none (TLS alert: \(words))",
                remedy: .giveCertificate)
        case "INTERNAL_ERROR":
            return DownloadError(
                .tls, "\(host) failed in the TLS handshake (TLS alert: \(words))",
                hint: "It may have no certificate for this name: check the host in the URL, or try again later")
        case "BAD_RECORD_MAC", "DECRYPTION_FAILED": return Self.damaged(host)
        case "CLOSE_NOTIFY", "USER_CANCELLED":
            return DownloadError(.tls, "\(host) broke off the TLS handshake", isTransient: true)
        default:
            return DownloadError(.tls, "\(host) refused TLS (TLS alert: \(words))", hint: Self.incompatible)
        }
    }

    /// The failure for a reason that BoringSSL itself found; `nil` if there is no sentence for it.
    private static func ownFailure(_ reason: String, host: String) -> DownloadError? {
        switch reason {
        case "CERTIFICATE_VERIFY_FAILED": return Self.distrusted(host)
        case "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "INVALID_OUTER_RECORD_TYPE":
            return DownloadError(
                .tls, "\(host) does not speak TLS on this port", hint: "If it speaks plain HTTP there, write http://")
        case "UNSUPPORTED_PROTOCOL", "UNKNOWN_PROTOCOL", "UNKNOWN_SSL_VERSION", "WRONG_SSL_VERSION":
            return Self.versionFailure(host)
        case "CANNOT_PARSE_LEAF_CERT", "WRONG_CERTIFICATE_TYPE", "UNKNOWN_CERTIFICATE_TYPE", "UNSUPPORTED_CERTIFICATE",
            "BAD_ECC_CERT", "WRONG_SIGNATURE_TYPE", "NO_COMMON_SIGNATURE_ALGORITHMS":
            return DownloadError(
                .tls, "\(host) has a certificate with a kind of key or signature that segdl does not support",
                hint: "segdl supports RSA, Ed25519, and ECDSA with P-256, P-384 or P-521. For others, use another "
                    + "program")
        case "DECRYPTION_FAILED_OR_BAD_RECORD_MAC", "BAD_DECRYPT", "DIGEST_CHECK_FAILED": return Self.damaged(host)
        default: return nil
        }
    }

    private static func versionFailure(_ host: String) -> DownloadError {
        DownloadError(
            .tls, "\(host) does not speak TLS 1.2 or 1.3, the versions that segdl speaks",
            hint: "Older versions are deprecated (RFC 8996): the server needs an update")
    }

    /// A record that was changed on its way: a new connection may do better.
    private static func damaged(_ host: String) -> DownloadError {
        DownloadError(.network, "the TLS connection to \(host) was damaged on its way", isTransient: true)
    }
}
