import NIOSSL

extension BoringSSLInternalError {
    /// Whether the verification of a certificate failed.
    ///
    /// Workaround: swift-nio-ssl shows BoringSSL's error code in the description only
    /// (https://github.com/apple/swift-nio-ssl/issues/101). A verification callback would report the failure as a
    /// value, but async-http-client takes none (https://github.com/swift-server/async-http-client/issues/285).
    var isDistrustedCertificate: Bool { self.description.contains("CERTIFICATE_VERIFY_FAILED") }
}
