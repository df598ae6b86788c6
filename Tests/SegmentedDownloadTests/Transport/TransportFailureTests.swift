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

    @Test("Another failure of the TLS handshake is final, and BoringSSL's description is the message")
    func otherHandshakeFailure() throws {
        let error = BoringSSLInternalError.eofDuringAdditionalCertficiateChainValidation
        let failure = try Self.failure(NIOSSLError.handshakeFailed(.sslError([error])))
        #expect(failure == DownloadError(.tls, "h: \("\([error])".printable)", remedy: .trustAuthority))
        #expect(!error.isDistrustedCertificate)
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
