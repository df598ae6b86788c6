import NIOCore
import NIOSSL
import SegmentedDownloadCore
public import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The certificate authorities to trust, and the client certificate to present.
public struct TrustPolicy: Hashable, Sendable {
    /// A PEM file of authorities to trust instead of the system's, which are those of ``readAuthorities(environment:)``, or
    /// else of the distribution.
    public var authorityFile: FilePath?
    /// A directory of such files, each named by its subject's hash (`openssl rehash`).
    public var authorityDirectory: FilePath?
    /// Whether server certificates are verified.
    public var verifiesCertificates = true
    /// A PEM file with the client certificate and its intermediate certificates.
    public var certificateFile: FilePath?
    /// A PEM file with the certificate's private key; `nil` if it is in the certificate's file.
    public var keyFile: FilePath?

    /// `SSL_CERT_FILE` and `SSL_CERT_DIR`, as far as they are set.
    private var authorityVariables: [String: String] = [:]

    public init() {}

    /// Has the environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR` replace the distribution's authorities, as OpenSSL,
    /// curl and wget do.
    public mutating func readAuthorities(environment: [String: String]) {
        self.authorityVariables = environment.filter { AuthorityStore.variables.contains($0.key) }
    }

    /// BoringSSL's own list and order, with P-521 and Ed25519 before SHA-1: without them, servers with such certificates
    /// refuse the handshake. BoringSSL has no code points for RSA-PSS keys.
    private static let signatureAlgorithms: [SignatureAlgorithm] = [
        .ecdsaSecp256R1Sha256, .rsaPssRsaeSha256, .rsaPkcs1Sha256, .ecdsaSecp384R1Sha384, .rsaPssRsaeSha384,
        .rsaPkcs1Sha384, .rsaPssRsaeSha512, .rsaPkcs1Sha512, .ecdsaSecp521R1Sha512, .ed25519, .rsaPkcs1Sha1,
    ]

    /// NIOSSL's own list and order, with P-521 at the end: for servers that exchange keys with nothing else, and in TLS 1.2
    /// also for certificates with such a key.
    private static let curves: [NIOTLSCurve] = [.x25519_MLKEM768, .x25519, .secp256r1, .secp384r1, .secp521r1]

    /// The TLS configuration for this policy.
    ///
    /// - Throws: ``DownloadError`` or ``DownloadError`` with code `usage` if a file is unusable.
    func tlsConfiguration() throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.verifySignatureAlgorithms = Self.signatureAlgorithms
        tls.curves = Self.curves
        // Do not wait for the peer's `close_notify`: that would take seconds when a connection is closed in mid-body.
        tls.shutdownTimeout = .zero
        if !self.verifiesCertificates { tls.certificateVerification = .none }
        if self.authorityFile == nil, self.authorityDirectory == nil {
            try AuthorityStore(environment: self.authorityVariables) { FileManager.default.fileExists(atPath: $0) }
                .apply(to: &tls)
        }
        let file = try self.authorityFile.map { try Self.certificates(in: try $0.text) }
        if let file { tls.trustRoots = .certificates(file) }
        if let directory = try self.authorityDirectory?.text {
            var isDirectory = false
            guard FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory), isDirectory else {
                throw DownloadError(.usage, "\(directory.printable) is not a directory of certificates")
            }
            // Only here NIOSSL accepts a directory.
            tls.trustRoots = .file(directory)
            tls.additionalTrustRoots = file.map { [.certificates($0)] } ?? []
        }
        if let file = try self.certificateFile?.text {
            tls.certificateChain = try Self.certificates(in: file).map { .certificate($0) }
            let keyFile = try self.keyFile?.text ?? file
            do {
                tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: keyFile, format: .pem))
            } catch {
                throw DownloadError(
                    .usage, "\(keyFile.printable) contains no PEM private key, or one that needs a passphrase",
                    hint: "Remove the passphrase with openssl pkey -in KEY -out PLAIN")
            }
        } else if self.keyFile != nil {
            throw DownloadError(.usage, "a private key was given without its certificate")
        }
        return tls
    }

    static func certificates(in file: String) throws -> [NIOSSLCertificate] {
        do {
            return try NIOSSLCertificate.fromPEMFile(file)
        } catch {
            throw DownloadError(.usage, "\(file.printable) contains no PEM certificates, or one that cannot be read")
        }
    }
}
