import Foundation
import Origin
import Testing

/// Options for the network, with the real command.
@Suite("Options: network")
struct NetworkOptionTests {
    @Test(
        "Connections use the first interface that exists, given by name or address",
        arguments: [
            (["--interface", "lo"], "127.0.0.1"), (["--interface", "127.0.0.2"], "127.0.0.2"),
            (["--interface", "none0", "--interface", "127.0.0.3"], "127.0.0.3"),
        ])
    func interface(option: [String], peer: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(["-q", "-s", "2"] + option + [origin.url("/2M/f.bin")])
            #expect(outcome.status == 0 && command.holds("f.bin", 2 << 20), "\(outcome)")
            #expect(Set(origin.log.snapshot().requests.map(\.peer)) == [peer])
        }
    }

    @Test("The error names an interface that does not exist, and no other interface is used")
    func noInterface() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("--retry", "0", "--interface", "none0", origin.url("/64k/f.bin"))
            #expect(outcome.status == 4 && outcome.errors.contains("no address to connect from on none0"), "\(outcome)")
            #expect(origin.log.snapshot().connectionsCount == 0)
        }
    }

    @Test("On an unmetered interface both values download", arguments: ["pause", "allow"])
    func metered(how: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("-q", "--metered", how, origin.url("/64k/f.bin"))
            #expect(outcome.status == 0 && command.holds("f.bin", 64 << 10), "\(outcome)")
        }
    }

    @Test(
        "Only addresses of the given family are used",
        arguments: [("-4", "127.0.0.1"), ("--ipv4", "127.0.0.1"), ("-6", "::1"), ("--ipv6", "::1")])
    func family(option: String, host: String) async throws {
        let hosts = ["127.0.0.1", "::1"]
        try await withOptionScene(.init(hosts: hosts)) { origin, command in
            for other in hosts {
                let outcome = try await command.run(
                    "-q", "--retry", "0", option, "-o", "f.bin", origin.url("/64k/f.bin", host: other))
                #expect(outcome.status == (other == host ? 0 : 4), "\(outcome)")
            }
            #expect(Set(origin.log.snapshot().requests.map(\.peer)) == [host])
        }
    }

    @Test("--resolve gives the address of a host")
    func resolve() async throws {
        try await withOptionScene { origin, command in
            let server = "server.test:\(origin.port)"
            let outcome = try await command.run(
                "-q", "--resolve", "\(server):127.0.0.1", "http://\(server)/64k/f.bin")
            #expect(outcome.status == 0 && command.holds("f.bin", 64 << 10), "\(outcome)")
            #expect(origin.values(of: "host") == [server])
        }
    }

    @Test(
        "Certificates are verified against the given authorities, or not at all",
        arguments: [
            ["--cacert", "ca.pem"], ["--ca-certificate", "ca.pem"], ["--capath", "authorities"],
            ["--ca-directory", "authorities"], ["--cacert", "other.pem", "--capath", "authorities"],
            ["--cacert", "ca.pem", "--capath", "empty"], ["SSL_CERT_FILE=ca.pem"], ["SSL_CERT_DIR=authorities"],
            ["SSL_CERT_DIR=empty:authorities"], ["SSL_CERT_FILE=ca.pem", "SSL_CERT_DIR=empty"], ["--insecure"],
            ["--no-check-certificate"],
        ])
    func trust(option: [String]) async throws {
        try await withOptionScene(.init(tls: true)) { origin, command in
            // The name that `openssl rehash` gives.
            for name in ["authorities", "empty"] {
                try FileManager.default.createDirectory(atPath: command.path(name), withIntermediateDirectories: false)
            }
            for name in ["ca.pem", "authorities/b6cf7875.0"] {
                try command.write(Origin.certificateAuthorityPEM, to: name)
            }
            let other = "/etc/ssl/certs/ca-certificates.crt"
            let othersText = try? String(contentsOfFile: other, encoding: .utf8)
            try command.write(othersText ?? Origin.certificateAuthorityPEM, to: "other.pem")
            let untrusted = try await command.run("-q", "--retry", "0", "-o", "f.bin", origin.url("/64k/f.bin"))
            #expect(untrusted.status == 5, "\(untrusted)")
            let variables = option.filter { $0.hasPrefix("SSL_") }.map { $0.split(separator: "=").map(String.init) }
            let outcome = try await command.run(
                ["-q", "-o", "f.bin"] + option.filter { !$0.hasPrefix("SSL_") } + [origin.url("/64k/f.bin")],
                environment: Dictionary(uniqueKeysWithValues: variables.map { ($0[0], $0[1]) }))
            #expect(outcome.status == 0 && command.holds("f.bin", 64 << 10), "\(outcome)")
        }
    }

    @Test("A file is received by one thread or several, and the number of threads is from 1 to 1024")
    func receivingThreads() async throws {
        try await withOptionScene(.init(tls: true)) { origin, command in
            for count in ["1", "3"] {
                let outcome = try await command.run(
                    "-q", "--insecure", "-s", "8", "--receiving-threads", count, "-o", count, origin.url("/64M/f.bin"))
                #expect(outcome.status == 0 && command.holds(count, 64 << 20), "\(outcome)")
            }
            for count in ["0", "1025", "1099511627776"] {
                let refused = try await command.run("-q", "--receiving-threads", count, origin.url("/64k/f.bin"))
                #expect(refused.status == 2 && refused.errors.contains("from 1 to 1024"), "\(refused)")
            }
        }
    }

    @Test("A redirect from https to http is followed if allowed, and the number of redirects is limited")
    func redirects() async throws {
        try await withOptionScene { plain, command in
            try await withOrigin(.init(tls: true)) { origin in
                let url = origin.url("/64k/f.bin?redirect=302:" + plain.url("/64k/f.bin"))
                let refused = try await command.run("-q", "--insecure", url)
                #expect(refused.status == 11 && plain.log.snapshot().requests.isEmpty, "\(refused)")
                let outcome = try await command.run("-q", "--insecure", "--allow-downgrade", url)
                #expect(outcome.status == 0 && command.holds("f.bin", 64 << 10), "\(outcome)")
            }
            let url = plain.url("/64k/g.bin?redirect-hops=3")
            let many = try await command.run("-q", "--max-redirs", "2", url)
            #expect(many.status == 8 && !command.exists("g.bin"), "\(many)")
            let enough = try await command.run("-q", "--max-redirs", "3", url)
            #expect(enough.status == 0 && command.holds("g.bin", 64 << 10), "\(enough)")
        }
    }

    @Test(
        "Only allowed schemes are used",
        arguments: [("=https", 11), ("-http", 11), ("=http", 0), ("-all,http", 0)] as [(String, Int32)])
    func schemes(list: String, status: Int32) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("-q", "--proto", list, origin.url("/64k/f.bin"))
            #expect(outcome.status == status && command.exists("f.bin") == (status == 0), "\(outcome)")
            #expect(origin.log.snapshot().requests.isEmpty == (status != 0))
        }
    }

    @Test("A proxy gets the request and the proxy credentials", arguments: ["--proxy", "--all-proxy"])
    func proxy(option: String) async throws {
        // The origin is its own proxy.
        try await withOptionScene { origin, command in
            let arguments = ["-q", option, origin.url(""), "--proxy-user", "user:word", "http://server.test/64k/f.bin"]
            let outcome = try await command.run(arguments, environment: ["no_proxy": "a.test"])
            #expect(outcome.status == 0 && command.holds("f.bin", 64 << 10), "\(outcome)")
            let excepted = try await command.run(
                ["--if-exists", "overwrite", "--retry", "1"] + arguments,
                environment: ["no_proxy": "a.test,server.test"])
            #expect(excepted.status == 4 && origin.log.snapshot().requests.count == 1, "\(excepted)")
            let request = try #require(origin.log.snapshot().requests.first)
            #expect(request.path == "http://server.test/64k/f.bin")
            #expect(request["proxy-authorization"] == "Basic dXNlcjp3b3Jk")
        }
    }

    @Test("A host in --noproxy is contacted without the proxy")
    func noproxy() async throws {
        try await withOptionScene { origin, command in
            try await withOrigin { proxy in
                for list in ["127.0.0.0/8", "*", "other.test"] {
                    origin.reset()
                    let outcome = try await command.run(
                        "-q", "--if-exists", "overwrite", "--noproxy", list, "--proxy", proxy.url(""),
                        origin.url("/64k/f.bin"))
                    #expect(outcome.status == 0, "\(outcome)")
                    #expect(origin.log.snapshot().requests.isEmpty == (list == "other.test"))
                }
                #expect(proxy.log.snapshot().requests.count == 1)
            }
        }
    }
}
