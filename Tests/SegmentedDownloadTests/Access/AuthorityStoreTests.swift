import NIOSSL
import Testing

@testable import SegmentedDownload

@Suite("Certificate authorities of the system")
struct AuthorityStoreTests {
    private static func store(_ environment: [String: String] = [:], _ paths: String...) -> AuthorityStore {
        AuthorityStore(environment: environment) { paths.contains($0) }
    }

    @Test(
        "The store of each distribution is found",
        arguments: [
            ("/etc/ssl/certs/ca-certificates.crt", true), ("/etc/pki/tls/certs/ca-bundle.crt", true),
            ("/etc/ssl/ca-bundle.pem", false), ("/var/lib/ca-certificates/ca-bundle.pem", false),
            ("/etc/ssl/cert.pem", false), ("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", false),
        ])
    func distributions(path: String, isDefault: Bool) {
        let store = Self.store([:], path)
        #expect(store.isDefault == isDefault && store.file == (isDefault ? nil : path))
    }

    @Test("A variable replaces the system's store, also if what it names is missing")
    func variables() {
        let system = "/etc/ssl/certs/ca-certificates.crt"
        var store = Self.store(["SSL_CERT_FILE": "/own"], system, "/own")
        #expect(store.file == "/own" && store.directories == [] && !store.isDefault)
        store = Self.store(["SSL_CERT_FILE": "/missing"], system)
        #expect(store.file == nil && !store.isDefault)
        store = Self.store(["SSL_CERT_DIR": "/a:/missing:/b"], system, "/a", "/b")
        #expect(store.file == nil && store.directories == ["/a", "/b"] && !store.isDefault)
        store = Self.store(["SSL_CERT_FILE": "", "SSL_CERT_DIR": ""], system)
        #expect(store.isDefault)
    }

    @Test("Variables with the places that are searched anyway cost nothing")
    func same() {
        let system = "/etc/ssl/certs/ca-certificates.crt"
        let variables = ["SSL_CERT_FILE": system, "SSL_CERT_DIR": "/etc/ssl/certs"]
        #expect(Self.store(variables, system, "/etc/ssl/certs").isDefault)
        #expect(!Self.store(["SSL_CERT_DIR": "/etc/ssl/certs"], system, "/etc/ssl/certs").isDefault)
        #expect(!Self.store(variables, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/certs").isDefault)
    }

    @Test("Without any store nothing is trusted in addition")
    func none() throws {
        var tls = TLSConfiguration.makeClientConfiguration()
        try Self.store().apply(to: &tls)
        #expect(tls.additionalTrustRoots.isEmpty)
        try Self.store(["SSL_CERT_FILE": "/missing"]).apply(to: &tls)
        #expect(tls.trustRoots == .certificates([]))
    }
}
