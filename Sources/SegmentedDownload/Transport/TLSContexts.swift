import NIOSSL
import Synchronization

/// The TLS contexts of tunnels. Each is made once, because that reads the trusted authorities.
final class TLSContexts: Sendable {
    private let configuration: TLSConfiguration
    private let contexts = Mutex<[Bool: NIOSSLContext]>([:])

    init(_ configuration: TLSConfiguration) {
        var configuration = configuration
        configuration.applicationProtocols = ["http/1.1"]
        self.configuration = configuration
    }

    /// - Parameter presents: Whether the client certificate may be presented.
    func context(presents: Bool) throws -> NIOSSLContext {
        try self.contexts.withLock { contexts in
            if let context = contexts[presents] { return context }
            let context = try NIOSSLContext(
                configuration: presents ? self.configuration : self.configuration.withoutCertificate)
            contexts[presents] = context
            return context
        }
    }
}

extension TLSConfiguration {
    /// The same without a client certificate.
    var withoutCertificate: TLSConfiguration {
        var configuration = self
        configuration.certificateChain = []
        configuration.privateKey = nil
        return configuration
    }
}
