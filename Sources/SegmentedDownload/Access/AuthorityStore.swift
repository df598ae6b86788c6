import NIOSSL

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The certificate authorities that the system trusts.
///
/// NIOSSL finds the stores of Debian, Arch, Alpine and Fedora. `SSL_CERT_FILE` and `SSL_CERT_DIR` are OpenSSL's variables
/// (`SSL_CTX_load_verify_locations(3)`), which curl and wget respect as well.
struct AuthorityStore: Hashable {
    /// PEM files of authorities.
    let files: [String]
    /// Directories of PEM files that are named by their hashes.
    let directories: [String]
    /// Whether NIOSSL's own search finds the store.
    let isDefault: Bool

    /// Stores that NIOSSL does not look for: of openSUSE, Alpine without `ca-certificates`, Fedora's source, and NixOS.
    private static let places = [
        "/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
        "/etc/ssl/certs/ca-bundle.crt",
    ]

    /// Those that NIOSSL looks for.
    private static let defaults = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"]

    /// Finds the store.
    ///
    /// A variable replaces the system's store, both variables together name one store of files and directories. What they
    /// name and does not exist is left out, as in OpenSSL, so that nothing more is trusted than they say.
    ///
    /// - Parameter exists: Whether a path exists.
    init(environment: [String: String], exists: (String) -> Bool) {
        let file = environment["SSL_CERT_FILE"].flatMap { $0.isEmpty ? nil : $0 }
        let directories = environment["SSL_CERT_DIR"].flatMap { $0.isEmpty ? nil : $0 }
        guard file != nil || directories != nil else {
            let place = Self.defaults.contains(where: exists) ? nil : Self.places.first(where: exists)
            (self.files, self.directories, self.isDefault) = (place.map { [$0] } ?? [], [], place == nil)
            return
        }
        self.files = file.map { [$0] }?.filter(exists) ?? []
        self.directories = directories?.split(separator: ":").map { String($0) }.filter(exists) ?? []
        self.isDefault = false
    }

    init() {
        self.init(environment: ProcessInfo.processInfo.environment) { FileManager.default.fileExists(atPath: $0) }
    }

    /// Makes a configuration trust these authorities and no others.
    func apply(to tls: inout TLSConfiguration) {
        guard !self.isDefault else { return }
        let all = (self.files + self.directories).map { NIOSSLAdditionalTrustRoots.file($0) }
        tls.trustRoots = .certificates([])
        tls.additionalTrustRoots = all
    }
}
