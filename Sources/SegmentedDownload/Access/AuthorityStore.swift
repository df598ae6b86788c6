import NIOSSL
import SegmentedDownloadCore

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
    /// A PEM file of authorities.
    let file: String?
    /// Directories of PEM files that are named by their hashes.
    let directories: [String]
    /// Whether NIOSSL's own search finds the store.
    let isDefault: Bool

    private static let fileVariable = "SSL_CERT_FILE"
    private static let directoryVariable = "SSL_CERT_DIR"
    /// The variables of the environment that count.
    static let variables = [Self.fileVariable, Self.directoryVariable]

    /// Stores that NIOSSL does not look for: of openSUSE, Alpine without `ca-certificates`, Fedora's source, and NixOS.
    private static let places = [
        "/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
        "/etc/ssl/certs/ca-bundle.crt",
    ]

    /// Those that NIOSSL looks for.
    private static let defaults = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"]

    /// The directory that NIOSSL searches besides.
    private static let defaultDirectory = "/etc/ssl/certs"

    /// Finds the store.
    ///
    /// A variable replaces the system's store, both variables together name one store of files and directories. What they
    /// name and does not exist is left out, as in OpenSSL, so that nothing more is trusted than they say.
    ///
    /// - Parameter exists: Whether a path exists.
    init(environment: [String: String], exists: (String) -> Bool) {
        let file = environment[Self.fileVariable].flatMap { $0.isEmpty ? nil : $0 }
        let directories = environment[Self.directoryVariable].flatMap { $0.isEmpty ? nil : $0 }
        guard file != nil || directories != nil else {
            let place = Self.defaults.contains(where: exists) ? nil : Self.places.first(where: exists)
            (self.file, self.directories, self.isDefault) = (place, [], place == nil)
            return
        }
        self.file = file.flatMap { exists($0) ? $0 : nil }
        self.directories = directories?.split(separator: ":").map { String($0) }.filter(exists) ?? []
        // Many systems set the variables to what is the default anyway.
        self.isDefault =
            file != nil && file == Self.defaults.first(where: exists)
            && self.directories.allSatisfy { $0 == Self.defaultDirectory }
    }

    /// Makes a configuration trust these authorities and no others.
    ///
    /// NIOSSL searches one directory when it needs a certificate. It would not search a second one, or one in addition
    /// to a file, so that those are read.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if a file has no PEM certificates.
    func apply(to tls: inout TLSConfiguration) throws {
        guard !self.isDefault else { return }
        var others = Array(self.directories.dropFirst()).flatMap { Self.hashedFiles(in: $0) }
        switch (self.directories.first, self.file) {
        case (let directory?, let file):
            tls.trustRoots = .file(directory)
            others += file.map { [$0] } ?? []
        case (nil, let file?): tls.trustRoots = .file(file)
        case (nil, nil): tls.trustRoots = .certificates([])
        }
        tls.additionalTrustRoots = try others.map { .certificates(try TrustPolicy.certificates(in: $0)) }
    }

    /// The files that `openssl rehash` makes: eight hexadecimal digits, a point and a number.
    private static func hashedFiles(in directory: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.filter { $0.wholeMatch(of: /[0-9a-f]{8}\.[0-9]+/) != nil }.sorted().map { "\(directory)/\($0)" }
    }
}
