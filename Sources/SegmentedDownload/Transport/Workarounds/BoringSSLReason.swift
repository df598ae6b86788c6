import NIOSSL

extension BoringSSLInternalError {
    /// BoringSSL's name of the reason, such as `CERTIFICATE_VERIFY_FAILED`; `nil` for an error of NIOSSL's own.
    ///
    /// Workaround: swift-nio-ssl shows BoringSSL's error code in the description only
    /// (https://github.com/apple/swift-nio-ssl/issues/101). A verification callback would report the failure as a
    /// value, but async-http-client takes none (https://github.com/swift-server/async-http-client/issues/285).
    var reason: String? { Self.reason(in: self.description) }

    /// - Parameter description: Such as
    ///   `Error: 268435581 error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED at handshake.cc:298`.
    static func reason(in description: String) -> String? {
        let parts = description.split(separator: ":", maxSplits: 5)
        guard parts.count > 5 else { return nil }
        return String(parts[5].prefix { $0 != " " })
    }
}
