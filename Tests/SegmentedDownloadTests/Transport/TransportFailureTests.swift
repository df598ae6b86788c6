import NIOCore
import NIOSSL
import Origin
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Errors of the HTTP client, TLS and the system, as the failures that users read.
@Suite struct TransportFailureTests {
    private static func failure(_ error: any Error) throws -> DownloadError {
        try #require(AsyncHTTPClientTransport.failure(error, host: "h") as? DownloadError)
    }

    @Test(
        "A system call's error is described by the system's message for its number",
        arguments: [
            (ECONNREFUSED, "h: no connection (connection refused)"),
            (ECONNRESET, "h: the connection broke (connection reset by peer)"),
            (EPIPE, "h: the connection broke (broken pipe)"),
        ])
    func systemError(number: Int32, message: String) throws {
        // The reason is NIO's text for programmers, and not part of the message.
        for reason in ["connect(descriptor:addr:size:)", "read (errno: 1): (x)"] {
            let failure = try Self.failure(IOError(errnoCode: number, reason: reason))
            #expect(failure == DownloadError(.network, message, isTransient: true, errno: number))
        }
    }

    @Test("A server that closes the connection during the TLS handshake may speak plain HTTP, or recover")
    func endOfHandshake() throws {
        let failure = try Self.failure(NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake])))
        #expect(
            failure
                == DownloadError(
                    .tls, "h broke off the TLS handshake", hint: "If it speaks plain HTTP there, write http://",
                    isTransient: true))
        for error in [BoringSSLError.syscallError, .zeroReturn] {
            let failure = try Self.failure(NIOSSLError.handshakeFailed(error))
            #expect(failure == DownloadError(.tls, "h broke off the TLS handshake", isTransient: true))
        }
    }

    @Test("BoringSSL's reason is read from its description, which has nothing else for users")
    func reason() throws {
        let text = "Error: 268435581 error:1000007d:SSL routines:OPENSSL_internal:WRONG_CURVE at /b/h.cc:298"
        #expect(BoringSSLInternalError.reason(in: text) == "WRONG_CURVE")
        let error = BoringSSLInternalError.eofDuringAdditionalCertficiateChainValidation
        #expect(error.reason == nil)
        let wrappers: [any Error] = [NIOSSLError.handshakeFailed(.sslError([error])), BoringSSLError.sslError([error])]
        for wrapped in wrappers {
            let failure = try Self.failure(wrapped)
            #expect(failure.code == .tls && failure.message == "TLS with h failed", "\(failure)")
            #expect(failure.remedy == nil && !failure.isTransient)
        }
    }

    @Test(
        "Each failure of TLS has a sentence that says what to do, and only distrust leads to the authorities",
        arguments: [
            ("SSLV3_ALERT_HANDSHAKE_FAILURE", "h refused the TLS handshake (handshake failure)", nil),
            ("TLSV1_ALERT_INSUFFICIENT_SECURITY", "(insufficient security)", nil),
            ("TLSV1_ALERT_PROTOCOL_VERSION", "h does not speak TLS 1.2 or 1.3", nil),
            ("UNSUPPORTED_PROTOCOL", "h does not speak TLS 1.2 or 1.3", nil),
            ("WRONG_VERSION_NUMBER", "h does not speak TLS on this port", nil),
            ("TLSV1_ALERT_UNRECOGNIZED_NAME", "no site of this name", nil),
            ("TLSV1_UNRECOGNIZED_NAME", "no site of this name", nil),
            ("TLSV1_ALERT_NO_APPLICATION_PROTOCOL", "HTTP/1.1", nil),
            ("TLSV1_ALERT_INTERNAL_ERROR", "(TLS alert: internal error)", nil),
            ("TLSV1_ALERT_CERTIFICATE_REQUIRED", "h requires a client certificate", .giveCertificate),
            ("SSLV3_ALERT_BAD_CERTIFICATE", "(TLS alert: bad certificate)", .giveCertificate),
            ("TLSV1_ALERT_UNKNOWN_CA", "(TLS alert: unknown ca)", .giveCertificate),
            ("SSLV3_ALERT_ILLEGAL_PARAMETER", "h refused TLS (TLS alert: illegal parameter)", nil),
            ("WRONG_SIGNATURE_TYPE", "a kind of key or signature that segdl does not support", nil),
            ("BAD_HANDSHAKE_RECORD", "TLS with h failed (bad handshake record)", nil),
            ("CERTIFICATE_VERIFY_FAILED", "h: the certificate is not trusted", .trustAuthority),
        ] as [(String, String, Remedy?)])
    func sentences(reason: String, text: String, remedy: Remedy?) {
        let failure = AsyncHTTPClientTransport.tlsFailure(reasons: ["OTHER", reason], host: "h")
        let only = AsyncHTTPClientTransport.tlsFailure(reasons: [reason], host: "h")
        #expect(only.code == .tls && only.message.contains(text), "\(only)")
        #expect(only.remedy == remedy && only.advice != nil && !only.isTransient, "\(only)")
        // The first reason that is known decides.
        #expect(reason == "BAD_HANDSHAKE_RECORD" || failure == only, "\(failure)")
    }

    @Test("A record that was damaged on its way, or a connection that is being closed, is worth another try")
    func transient() throws {
        let damaged = AsyncHTTPClientTransport.tlsFailure(reasons: ["DECRYPTION_FAILED_OR_BAD_RECORD_MAC"], host: "h")
        #expect(damaged.code == .network && damaged.isTransient)
        for error in [NIOSSLError.uncleanShutdown, .readInInvalidTLSState, .shutdownFailed(.syscallError)] {
            let failure = try Self.failure(error)
            #expect(failure.code == .network && failure.isTransient, "\(failure)")
        }
    }

    @Test("A certificate for another host is named as such")
    func otherHost() throws {
        let failure = try Self.failure(NIOSSLExtraError.failedToValidateHostname)
        #expect(failure == DownloadError(.tls, "h: the certificate is for another host", remedy: .skipNameCheck))
    }

    @Test("A certificate from an unknown authority is recognized in BoringSSL's own error")
    func distrusted() async throws {
        try await Harness.run(.init(tls: true)) { harness in
            guard case .failure(let error) = await harness.fetch("/1k/file.bin", { $0.retries = 1 }) else {
                Issue.record("the certificate was trusted")
                return
            }
            #expect(error.code == .tls && error.remedy == .trustAuthority, "\(error)")
            #expect(error.message.contains(": the certificate is not trusted"), "\(error)")
        }
    }
}
