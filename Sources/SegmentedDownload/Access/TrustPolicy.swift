import NIOCore
import NIOSSL
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Whose certificates are believed, and which one is shown.
public struct TrustPolicy: Hashable, Sendable {
    /// A PEM file with the authorities to trust instead of the system's.
    public var authorityFile: String?
    /// A directory of such files, each named by its subject's hash (`openssl rehash`).
    public var authorityDirectory: String?
    /// Whether certificates are checked.
    public var verifiesCertificates = true
    /// A PEM file with our certificate, and those that vouch for it.
    public var certificateFile: String?
    /// A PEM file with its private key; absent, it is in the certificate's.
    public var keyFile: String?

    public init() {}

    /// - Throws: ``Failure`` with code `usage` where a file does not hold what it should.
    func tlsConfiguration() throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        // A connection we close has more to say than we want to hear: its farewell would be waited for, for seconds.
        tls.shutdownTimeout = .zero
        if !self.verifiesCertificates { tls.certificateVerification = .none }
        if let file = self.authorityFile {
            tls.trustRoots = .certificates(try Self.certificates(in: file))
        }
        if let directory = self.authorityDirectory {
            var isDirectory = false
            guard FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory), isDirectory else {
                throw Failure(.usage, "\(directory.printable) is no directory of certificates")
            }
            if self.authorityFile == nil {
                tls.trustRoots = .file(directory)
            } else {
                tls.additionalTrustRoots = [.file(directory)]
            }
        }
        if let file = self.certificateFile {
            tls.certificateChain = try Self.certificates(in: file).map { .certificate($0) }
            let keyFile = self.keyFile ?? file
            do {
                tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: keyFile, format: .pem))
            } catch {
                throw Failure(
                    .usage, "\(keyFile.printable) holds no private key in PEM form, or one that needs a passphrase",
                    hint: "openssl pkey -in KEY -out PLAIN writes one without")
            }
        } else if self.keyFile != nil {
            throw Failure(.usage, "a private key is of no use without its certificate")
        }
        return tls
    }

    private static func certificates(in file: String) throws -> [NIOSSLCertificate] {
        do {
            return try NIOSSLCertificate.fromPEMFile(file)
        } catch {
            throw Failure(.usage, "\(file.printable) holds no certificates in PEM form")
        }
    }
}
