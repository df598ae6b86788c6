import Foundation
import Origin
import TestSupport
import Testing

@testable import SegmentedDownload

/// Redirects, credentials and certificates (FAULTS E, G).
@Suite struct RedirectAndTLSTests {
    @Test("A redirect is followed, and its target asked directly from then on", arguments: [301, 302, 303, 307, 308])
    func followed(status: Int) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/8M/file.bin?rate=4M&redirect-to-self=\(status)")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
            harness.origin.reset()
            // One connection has no others to be compared with, so it is never replaced: after that the source would be
            // asked again, because it may have a better target by then.
            let single = await harness.fetch("/8M/single.bin?ranges=short:1000000&redirect-to-self=\(status)") {
                $0.destination = .file(harness.directory + "/single.bin")
                $0.segments = .exactly(1)
            }
            #expect(single.code == nil, "\(single)")
            let statuses = harness.origin.log.snapshot().requests.map(\.status)
            #expect(statuses == [status] + Array(repeating: 206, count: 9))
        }
    }

    @Test("An expired target is resolved again, also if the new one expires before it is used")
    func expiredAtOnce() async throws {
        try await Harness.run { harness in
            // The first connection ends early, the second finds the target expired, and then the new one too.
            let result = await harness.fetch("/2M/file.bin?redirect-to-self=302&fail=403:2:1&close-after=1M:1") {
                $0.segments = .exactly(1)
                $0.retries = 0
            }
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 2.mebibytes))
            let statuses = harness.origin.log.snapshot().requests.map(\.status)
            #expect(statuses == [302, 206, 403, 302, 403, 302, 206])
        }
    }

    @Test(
        "A target that refuses fails the download after requests with less, and if one has worked also after two more resolutions"
    )
    func refusedTarget() async throws {
        try await Harness.run { harness in
            #expect(await harness.fetch("/1M/file.bin?redirect-to-self=302&fail=403:all").code == .server)
            // With an open range, with 64 MiB of it, and plainly.
            #expect(harness.origin.log.snapshot().requests.map(\.status) == [302, 403, 302, 403, 302, 403])
            harness.origin.log.reset()
            let result = await harness.fetch("/2M/file.bin?redirect-to-self=302&fail=403:all:1&close-after=1M:1") {
                $0.segments = .exactly(1)
                // Otherwise the server would be asked thrice more, because it has just served the file.
                $0.retries = 0
            }
            #expect(result.code == .server)
            #expect(
                harness.origin.log.snapshot().requests.map(\.status) == [302, 206, 403, 302, 403, 302, 403, 302, 403])
        }
    }

    @Test("A connection that segdl closes leaves the redirect's target unchanged")
    func givenUp() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                // Only heads arrive, for at most two connections: none can look slower than the other, and segdl closes
                // those that are too many and no others.
                let download = try group.add(
                    harness.request("/8M/file.bin?stall-after=0:all&redirect-to-self=302") {
                        $0.segments = .exactly(2)
                        $0.stallTimeout = .seconds(3600)
                    })
                for count in 3...6 {
                    await harness.origin.log.waitForRequests(count)
                    download.update(segments: .exactly(1))
                    for await case .progress(let progress) in download.events where progress.connections == 1 { break }
                    download.update(segments: .exactly(2))
                }
                await harness.origin.log.waitForRequests(7)
                await download.cancel(keepingPartial: false)
            }
            let statuses = harness.origin.log.snapshot().requests.map(\.status)
            #expect(statuses == [302] + Array(repeating: 206, count: 6))
        }
    }

    @Test("Each connection requests an expired target once, however many there are and however often it expires")
    func expiring() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch(
                "/8M/file.bin?redirect-to-self=302&expires=1s&rate=700k&ranges=short:300000")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
            let expired = harness.origin.log.snapshot().requests.filter { $0.status == 403 }
            #expect(!expired.isEmpty)
            let targets = Dictionary(grouping: expired, by: \.path)
            #expect(targets.values.allSatisfy { $0.count <= 4 }, "\(targets.mapValues(\.count))")
        }
    }

    @Test(
        "A redirect's target that has expired is resolved anew, for one failed request a connection",
        arguments: [401, 403, 404, 410])
    func expired(status: Int) async throws {
        try await Harness.run { harness in
            let first = harness.origin.url("/8M/first.bin%3frate=2M%26fail=\(status):all:1")
            let second = harness.origin.url("/8M/second.bin%3frate=4M")
            let result = await harness.fetch("/8M/file.bin?redirect=302:\(first)&redirect=302:\(second)")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
            let log = harness.origin.log
            let failed = log.snapshot(path: "/8M/first.bin").requests.filter { $0.status == status }
            #expect((1...4).contains(failed.count))
            #expect(log.snapshot(path: "/8M/second.bin").requests.contains { $0.status == 206 })
        }
    }

    @Test("A redirect loop ends")
    func loop() async throws {
        try await Harness.run { harness in
            #expect(await harness.fetch("/1M/file.bin?redirect-loop").code == .server)
            #expect(harness.origin.log.snapshot().requests.count == 21)
        }
    }

    @Test("Fields and credentials of the user are sent to the named origin only")
    func credentialsStay() async throws {
        try await Harness.run { first in
            try await Harness.run { second in
                let target = second.origin.url("/1M/file.bin")
                let result = await first.fetch("/1M/file.bin?redirect=302:\(target)") {
                    $0.fields = [.authorization: "Bearer secret", .cookie: "a=b", .init("X-Secret")!: "c"]
                }
                #expect(result.code == nil, "\(result)")
                let sent = first.origin.log.snapshot().requests.flatMap(\.headers).map(\.name)
                #expect(sent.contains { $0.lowercased() == "x-secret" })
                let leaked = second.origin.log.snapshot().requests.flatMap(\.headers).map { $0.name.lowercased() }
                #expect(!leaked.contains { ["authorization", "cookie", "x-secret"].contains($0) })
            }
        }
    }

    @Test(
        "Credentials do not follow a redirect to another port, unless the user trusts it",
        arguments: [false, true])
    func everythingStays(isTrusted: Bool) async throws {
        try await Harness.run { first in
            try await Harness.run { second in
                var configuration = DownloadConfiguration()
                configuration.netrc = try Netrc(text: "machine 127.0.0.1 login u password p", name: "netrc")
                try configuration.cookies.load(text: "127.0.0.1\tFALSE\t/\tFALSE\t0\tc\t1\n", name: "cookies")
                configuration.trustsRedirects = isTrusted
                let target = second.origin.url("/1M/file.bin")
                let result = await first.fetch("/1M/file.bin?redirect=302:\(target)", configuration: configuration) {
                    $0.fields = [.cookie: "own=2"]
                }
                #expect(result.code == nil, "\(result)")
                let names = { (harness: Harness) in
                    Set(harness.origin.log.snapshot().requests.flatMap(\.headers).map { $0.name.lowercased() })
                }
                #expect(names(first).isSuperset(of: ["authorization", "cookie"]))
                // All cookies are in one field (RFC 6265 §5.4).
                let fields = first.origin.log.snapshot().requests.map { request in
                    request.headers.filter { $0.name.lowercased() == "cookie" }.map(\.value)
                }
                #expect(fields.allSatisfy { $0 == ["own=2; c=1"] })
                #expect(names(second).isDisjoint(with: ["authorization", "cookie"]) != isTrusted)
            }
        }
    }

    @Test(
        "Over TLS, the target of a redirect gets the credentials of its own entry in the netrc file, and no default ones",
        arguments: [
            ("machine localhost", "localhost", true), ("default", "localhost", false),
            ("machine 127.0.0.2", "localhost", false), ("machine 127.0.0.1", "127.0.0.1", false),
        ])
    func loginElsewhere(entry: String, host: String, isSent: Bool) async throws {
        try await withOrigin(.init(tls: true)) { login in
            try await Harness.run { first in
                var configuration = DownloadConfiguration()
                configuration.trust.verifiesCertificates = false
                configuration.netrc = try Netrc(text: "\(entry) login u password p", name: "netrc")
                let target = login.url("/1M/file.bin", host: host)
                let result = await first.fetch("/1M/file.bin?redirect=302:\(target)", configuration: configuration)
                #expect(result.code == nil, "\(result)")
                let fields = login.log.snapshot().requests.map { $0["authorization"] }
                #expect(!fields.isEmpty && fields.allSatisfy { $0 == (isSent ? "Basic dTpw" : nil) })
            }
        }
    }

    @Test("Credentials of the URL take precedence over the request's, and these over the netrc file's")
    func precedence() async throws {
        for (user, request, expected) in [
            ("u:p@", Credentials?.some(.bearer(token: "t")), "Basic dTpw"), ("", .bearer(token: "t"), "Bearer t"),
            ("", nil, "Basic bjpu"),
        ] {
            try await Harness.run { harness in
                var configuration = DownloadConfiguration()
                configuration.netrc = try Netrc(text: "default login n password n", name: "netrc")
                let url = harness.origin.url("/64k/file.bin").replacingOccurrences(of: "//", with: "//\(user)")
                let source = try SourceURL(url)
                let result = await harness.fetch("/64k/file.bin", configuration: configuration) {
                    $0.source = source
                    $0.credentials = request
                }
                #expect(result.code == nil, "\(result)")
                let sent = harness.origin.log.snapshot().requests.flatMap(\.headers)
                #expect(sent.filter { $0.name.lowercased() == "authorization" }.map(\.value) == [expected])
            }
        }
    }

    @Test("Disallowed schemes get no request, not even after a redirect")
    func schemes() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.schemes = ["https"]
            #expect(await harness.fetch("/1M/file.bin", configuration: configuration).code == .policy)
            configuration.schemes = ["http"]
            let result = await harness.fetch(
                "/1M/file.bin?redirect=302:https://127.0.0.1:1/", configuration: configuration)
            #expect(result.code == .policy)
            #expect(harness.origin.log.snapshot().requests.map(\.status) == [302])
        }
    }

    @Test("User name and password of a URL are sent, and not shown")
    func userInformation() async throws {
        try await Harness.run { harness in
            let url = harness.origin.url("/1M/file.bin?auth=user:secret")
                .replacingOccurrences(of: "http://", with: "http://user:secret@")
            let source = try SourceURL(url)
            let result = await harness.fetch("/1M/file.bin") { $0.source = source }
            #expect(result.code == nil, "\(result)")
            #expect(!source.string.contains("secret@") && !source.description.contains("secret"))
        }
    }

    @Test(
        "Schemes other than http and https are not followed",
        arguments: ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:text/plain,x"])
    func otherSchemes(target: String) async throws {
        try await Harness.run { harness in
            #expect(await harness.fetch("/1M/file.bin?redirect=302:\(target)").code == .policy)
        }
    }

    static let trusting: DownloadConfiguration = {
        let path = NSTemporaryDirectory() + "segdl-test-authority-\(getpid()).pem"
        try? Data(Origin.certificateAuthorityPEM.utf8).write(to: URL(fileURLWithPath: path))
        var configuration = DownloadConfiguration()
        configuration.trust.authorityFile = FilePath(path)
        return configuration
    }()

    @Test("https with a trusted authority is fetched in segments")
    func trusted() async throws {
        try await Harness.run(.init(tls: true)) { harness in
            let result = await harness.fetch("/8M/file.bin", configuration: Self.trusting)
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test(
        "An invalid certificate is refused, and no file is created",
        arguments: [Origin.Certificate.expired, .wrongHost, .selfSigned])
    func untrusted(certificate: Origin.Certificate) async throws {
        var configuration = Origin.Configuration(tls: true)
        configuration.certificate = certificate
        try await Harness.run(configuration) { harness in
            let result = await harness.fetch("/1M/file.bin", configuration: Self.trusting) { $0.retries = 1 }
            #expect(result.code == .tls, "\(result)")
            #expect(!harness.exists(harness.path) && !harness.exists(harness.part))
            var trustful = DownloadConfiguration()
            trustful.trust.verifiesCertificates = false
            #expect(await harness.fetch("/1M/file.bin", configuration: trustful).code == nil)
        }
    }

    @Test("Servers with keys of P-521 and Ed25519 are read", arguments: [Origin.Certificate.p521, .ed25519])
    func rareKeys(certificate: Origin.Certificate) async throws {
        try await Harness.run(.init(tls: true, certificate: certificate)) { harness in
            var trustful = DownloadConfiguration()
            trustful.trust.verifiesCertificates = false
            let result = await harness.fetch("/1M/file.bin", configuration: trustful)
            #expect(result.code == nil, "\(result)")
        }
    }

    @Test("A body that ends without a close_notify is incomplete")
    func truncatedTLS() async throws {
        try await Harness.run(.init(tls: true)) { harness in
            let resource = "/2M/file.bin?ranges=no&length=none"
            let whole = await harness.fetch(resource, configuration: Self.trusting)
            #expect(whole.value?.bytes == 2.mebibytes, "\(whole)")
            try harness.remove(harness.path)
            let cut = await harness.fetch(resource + "&close-notify=no", configuration: Self.trusting) {
                $0.retries = 1
            }
            #expect(cut.code == .network, "\(cut)")
        }
    }

    @Test("A redirect from https to http is refused unless allowed")
    func downgrade() async throws {
        try await Harness.run { plain in
            try await Harness.run(.init(tls: true)) { secure in
                let resource = "/1M/file.bin?redirect=302:\(plain.origin.url("/1M/file.bin"))"
                #expect(await secure.fetch(resource, configuration: Self.trusting).code == .policy)
                var allowing = Self.trusting
                allowing.allowsDowngrade = true
                #expect(await secure.fetch(resource, configuration: allowing).code == nil)
            }
        }
    }

    @Test(
        "URLs that cannot be fetched are refused with a reason",
        arguments: [
            "http://a b/", "http:////x", "http://h:99999/", "h/x", "ftp://h/", "http://", "", "http://h/\u{7}",
            "http://h%00.example/",
        ])
    func malformedURLs(text: String) {
        #expect(throws: DownloadError.self) { try SourceURL(text) }
    }
}
