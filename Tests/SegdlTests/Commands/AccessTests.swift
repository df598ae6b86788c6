import Foundation
import Origin
import Testing

@testable import segdl

/// Authentication, name resolution and proxies, with nginx and proxies of the Debian archive.
@Suite("Access", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct AccessTests {
    private static let content = OriginContent(seed: 9).bytes(0..<(3 << 20))
    /// `user:pa:ss`, by `openssl passwd -apr1`.
    private static let passwords = "user:$apr1$abcdefgh$jENn7gMAVPUBTYVKBjwHl0\n"

    private static func run(
        _ body: (Nginx, Segdl) async throws -> Void
    ) async throws {
        var settings = Nginx.Settings(passwords: Self.passwords)
        settings.locations = """
            location /private/ { rewrite ^/private/(.*) /$1 break; auth_basic it; auth_basic_user_file passwords; }
            location /certified/ { if ($ssl_client_verify != SUCCESS) { return 403; } rewrite ^/certified/(.*) /$1 break; }
            location /to-certified/ { return 302 https://127.0.0.1:$arg_port/certified/file.bin; }
            location /cookies/ {
                add_header Set-Cookie "pass=yes; Path=/" always;
                if ($http_cookie !~ "pass=yes") { return 302 /cookies/again; }
                rewrite ^ /file.bin last;
            }
            """
        try await Nginx.run(settings) { nginx in
            try nginx.serve(Self.content)
            try await withCommand { command in try await body(nginx, command) }
        }
    }

    /// Tests run without proxies unless they set one.
    private static let noExceptions = ["no_proxy": ""]

    private static func holds(_ command: Segdl) -> Bool {
        FileManager.default.contents(atPath: command.path("f.bin")) == Data(Self.content)
    }

    @Test(
        "Basic authentication takes credentials from the option, the URL, or a netrc file that only its owner may read",
        arguments: ["option", "two options", "url", "netrc"])
    func basic(way: String) async throws {
        try await Self.run { nginx, command in
            let url = nginx.url("private/file.bin")
            var arguments = ["-q", "-s", "3", "-o", "f.bin"]
            switch way {
            case "option": arguments += ["-u", "user:pa:ss", url]
            case "two options": arguments += ["--user=user", "--password=pa:ss", url]
            case "url": arguments += [url.replacingOccurrences(of: "//", with: "//user:pa%3Ass@")]
            default:
                try Data("machine 127.0.0.1 login user password pa:ss\n".utf8)
                    .write(to: URL(fileURLWithPath: command.path("netrc")))
                let shared = try await command.run(arguments + ["--netrc-file", "netrc", url])
                #expect(shared.status == 11 && shared.errors.contains("chmod 600"), "\(shared)")
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: command.path("netrc"))
                arguments += ["--netrc-file", "netrc", url]
            }
            let outcome = try await command.run(arguments)
            #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
        }
    }

    @Test("A wrong password is exit 6 with a remedy, and is not stored")
    func wrongPassword() async throws {
        try await Self.run { nginx, command in
            let outcome = try await command.run("--json", "-v", "-u", "user:secretword", nginx.url("private/file.bin"))
            #expect(outcome.status == 6 && outcome.errors.contains("--netrc"), "\(outcome)")
            #expect(!(outcome.output + outcome.errors).contains("secretword"))
        }
    }

    @Test("Manifest, events, errors, history and process title contain no secret", arguments: [false, true])
    func secrets(isKept: Bool) async throws {
        try await Self.run { nginx, command in
            let url = nginx.url("file.bin").replacingOccurrences(of: "//", with: "//user:secret1@")
            let arguments = [
                "--json", "-v", "-o", "f.bin", "--limit-rate", isKept ? "1M" : "100k", "--oauth2-bearer", "secret2",
                "-H", "X-Key: secret3", "-bsecret4=secret4", "--proxy-user=u:secret5", "--keep-history", "h.json", url,
            ]
            let outcome = try await command.run(arguments) { process in
                await command.waitForBytes(writtenBy: process, 64 << 10)
                let title = FileManager.default.contents(atPath: "/proc/\(process)/cmdline") ?? Data()
                #expect(!String(decoding: title, as: UTF8.self).contains("secret"))
                if !isKept { kill(process, SIGINT) }
            }
            #expect(outcome.status == (isKept ? 0 : 130), "\(outcome)")
            var texts = [outcome.output, outcome.errors]
            for name in ["f.bin.segdl", "h.json"] {
                texts.append(
                    String(decoding: FileManager.default.contents(atPath: command.path(name)) ?? Data(), as: UTF8.self))
            }
            #expect(!texts.contains { $0.contains("secret") }, "\(texts)")
        }
    }

    @Test("Cookies that a redirect sets are sent back, in addition to those of a file")
    func cookies() async throws {
        try await Self.run { nginx, command in
            let line = "127.0.0.1\tFALSE\t/\tFALSE\t0\tfrom\tfile\n"
            try Data(line.utf8).write(to: URL(fileURLWithPath: command.path("jar")))
            let outcome = try await command.run(
                "-q", "-s", "1", "-o", "f.bin", "-b", "own=1", "--load-cookies", "jar", nginx.url("cookies/x"))
            #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
            #expect(nginx.accessLog.contains("own=1; from=file; pass=yes"), "\(nginx.accessLog)")
        }
    }

    @Test(
        "A client certificate is sent to a server that requires one",
        arguments: [("--cert", "--key"), ("--certificate", "--private-key")])
    func clientCertificate(certificate: String, key: String) async throws {
        try await Self.run { nginx, command in
            let url = "https://127.0.0.1:\(nginx.portTLS)/certified/file.bin"
            let trust = ["-q", "-o", "f.bin", "--cacert", nginx.directory + "/ca.pem"]
            let refused = try await command.run(trust + [url])
            #expect(refused.status == 8 && refused.errors.contains("403"), "\(refused)")
            let shown = [certificate, nginx.directory + "/client.pem", key, nginx.directory + "/client.key"]
            let outcome = try await command.run(trust + shown + [url])
            #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
            // After a redirect to another origin it is not sent, unless the user allows it.
            let redirected = nginx.url("to-certified/?port=\(nginx.portTLS)")
            let unshown = try await command.run(trust + shown + ["--if-exists", "overwrite", redirected])
            #expect(unshown.status == 8 && unshown.errors.contains("403"), "\(unshown)")
            let trusted = try await command.run(
                trust + shown + ["--location-trusted", "--if-exists", "overwrite", redirected])
            #expect(trusted.status == 0, "\(trusted)")
            for bad in [["--cert", "/dev/null"], ["--cert", nginx.directory + "/client.pem"], ["--capath", "/none"]] {
                #expect(try await command.run(trust + bad + [url]).status == 2)
            }
        }
    }

    @Test("--resolve replaces the address of a name for one port, and the certificate is still checked")
    func resolve() async throws {
        try await Self.run { nginx, command in
            let arguments = ["-q", "-o", "f.bin", "--cacert", nginx.directory + "/ca.pem", "--retry", "0"]
            let plain = try await command.run(
                arguments + [
                    "--resolve", "a.invalid:\(nginx.port):127.0.0.1", "http://a.invalid:\(nginx.port)/file.bin",
                ])
            #expect(plain.status == 0 && Self.holds(command), "\(plain)")
            let other = try await command.run(
                arguments + [
                    "--if-exists", "overwrite", "--resolve", "a.invalid:1:127.0.0.1",
                    "http://a.invalid:\(nginx.port)/file.bin",
                ])
            #expect(other.status == 4)
            let certified = try await command.run(
                arguments + [
                    "--resolve", "a.invalid:\(nginx.portTLS):127.0.0.1", "https://a.invalid:\(nginx.portTLS)/file.bin",
                ])
            #expect(certified.status == 5, "\(certified)")
        }
    }

    @Test(
        "-4 and -6 select the addresses by which a server is reached",
        arguments: [("-4", "127.0.0.1", "[::1]"), ("-6", "[::1]", "127.0.0.1")])
    func family(option: String, host: String, other: String) async throws {
        try await Self.run { nginx, command in
            let arguments = ["-q", "-o", "f.bin", "--retry", "0", option]
            let refused = try await command.run(arguments + ["http://\(other):\(nginx.port)/file.bin"])
            #expect(refused.status == 4 && refused.errors.contains("address"), "\(refused)")
            let outcome = try await command.run(arguments + ["http://\(host):\(nginx.port)/file.bin"])
            #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
        }
    }

    // MARK: Proxies

    @Test(
        "An HTTP proxy gets requests for http URLs and CONNECT for https ones, and only its own credentials",
        .enabled(if: ProxyServer.tinyproxy != nil, "tinyproxy is not installed"), arguments: [false, true])
    func httpProxy(isTLS: Bool) async throws {
        try await Self.run { nginx, command in
            let server = try ProxyServer.tinyproxy(in: command.directory, ports: [nginx.portTLS])
            let url = isTLS ? "https://localhost:\(nginx.portTLS)/file.bin" : nginx.url()
            let arguments = [
                "-q", "-s", "3", "-o", "f.bin", "--retry", "10", "--cacert", nginx.directory + "/ca.pem", url,
            ]
            let proxy = ["http_proxy": "http://user:password@127.0.0.1:\(server.port)", "no_proxy": ""]
            let outcome = try await command.run(
                ["--proxy", "127.0.0.1:\(server.port)", "--proxy-user", "user:password"] + arguments,
                shell: server.shell, environment: Self.noExceptions)
            #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
            #expect(!nginx.accessLog.contains("Basic"))
            let refused = try await command.run(
                ["--proxy", "127.0.0.1:\(server.port)", "--if-exists", "overwrite"] + arguments, shell: server.shell,
                environment: Self.noExceptions)
            #expect(refused.status == 6 && refused.errors.contains("--proxy-user"), "\(refused)")
            guard !isTLS else { return }
            let fromEnvironment = try await command.run(
                ["--if-exists", "overwrite"] + arguments, shell: server.shell, environment: proxy)
            #expect(fromEnvironment.status == 0, "\(fromEnvironment)")
            let unused = try await command.run(
                ["--if-exists", "overwrite", "--noproxy", "127.0.0.0/8"] + arguments,
                environment: ["http_proxy": "http://127.0.0.1:1", "no_proxy": ""])
            #expect(unused.status == 0, "\(unused)")
        }
    }

    @Test(
        "A proxy with TLS is used for both, after its certificate is checked",
        .enabled(
            if: ProxyServer.tinyproxy != nil && ProxyServer.stunnel != nil, "tinyproxy or stunnel is not installed"),
        arguments: [false, true])
    func encryptedProxy(isTLS: Bool) async throws {
        try await Self.run { nginx, command in
            let server = try ProxyServer.encrypted(in: command.directory, certificateOf: nginx)
            let url = isTLS ? "https://localhost:\(nginx.portTLS)/file.bin" : nginx.url()
            let arguments = [
                "-q", "-s", "3", "-o", "f.bin", "--if-exists", "overwrite", "--retry", "10", "--proxy",
                "https://user:password@localhost:\(server.port)", url,
            ]
            let outcome = try await command.run(
                arguments + ["--cacert", nginx.directory + "/ca.pem"], shell: server.shell,
                environment: Self.noExceptions)
            #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
            #expect(!nginx.accessLog.contains("Basic"))
            let distrusted = try await command.run(
                arguments, shell: server.shell, environment: Self.noExceptions)
            #expect(distrusted.status == 5 && distrusted.errors.contains("is not trusted"), "\(distrusted)")
            #expect(distrusted.errors.contains("the proxy localhost:\(server.port)"), "\(distrusted)")
            let unchecked = try await command.run(
                arguments + ["--insecure"], shell: server.shell, environment: Self.noExceptions)
            #expect(unchecked.status == 0, "\(unchecked)")
        }
    }

    @Test(
        "A SOCKS proxy is used for both, and names are resolved locally or by the proxy",
        .enabled(if: ProxyServer.dante != nil && getuid() == 0, "dante is not installed, or needs root"),
        arguments: ["socks5", "socks5h"], [false, true])
    func socks(scheme: String, isTLS: Bool) async throws {
        try await Self.run { nginx, command in
            let server = try ProxyServer.dante(in: command.directory)
            let url = isTLS ? "https://localhost:\(nginx.portTLS)/file.bin" : "http://localhost:\(nginx.port)/file.bin"
            let outcome = try await command.run(
                [
                    "-q", "-s", "3", "-o", "f.bin", "--retry", "10", "--cacert", nginx.directory + "/ca.pem",
                    "--proxy", "\(scheme)://127.0.0.1:\(server.port)", url,
                ], shell: server.shell, environment: Self.noExceptions)
            #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
        }
    }

    @Test(
        "A SOCKS proxy with a password gets it, and a wrong one is an error of credentials",
        .enabled(if: ProxyServer.microsocks != nil, "microsocks is not installed"), arguments: [false, true])
    func socksPassword(isTLS: Bool) async throws {
        try await Self.run { nginx, command in
            let server = try ProxyServer.microsocks(in: command.directory)
            let url = isTLS ? "https://localhost:\(nginx.portTLS)/file.bin" : "http://localhost:\(nginx.port)/file.bin"
            let arguments = [
                "-q", "-s", "3", "-o", "f.bin", "--retry", "10", "--cacert", nginx.directory + "/ca.pem", url,
            ]
            let proxy = { (user: String) in "socks5h://\(user)127.0.0.1:\(server.port)" }
            let outcome = try await command.run(
                arguments + ["--proxy", proxy("user:password@")], shell: server.shell, environment: Self.noExceptions)
            #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
            for (user, words) in [("", "requires credentials"), ("user:wrong@", "rejects the name or the password")] {
                let refused = try await command.run(
                    arguments + ["--if-exists", "overwrite", "--proxy", proxy(user)], shell: server.shell,
                    environment: Self.noExceptions)
                #expect(refused.status == 6 && refused.errors.contains(words), "\(refused)")
            }
        }
    }

    @Test(
        "Squid gets a digest of the password, for http URLs and for CONNECT",
        .enabled(if: ProxyServer.squid != nil, "squid is not installed"), arguments: [false, true])
    func proxyDigest(isTLS: Bool) async throws {
        try await Self.run { nginx, command in
            let server = try ProxyServer.squid(in: command.directory, portTLS: nginx.portTLS)
            let url = isTLS ? "https://localhost:\(nginx.portTLS)/file.bin" : nginx.url()
            let arguments = [
                "-q", "-s", "3", "-o", "f.bin", "--retry", "20", "--cacert", nginx.directory + "/ca.pem", "--proxy",
                "127.0.0.1:\(server.port)", url,
            ]
            let outcome = try await command.run(
                arguments + ["--proxy-user", "user:password"], shell: server.shell, environment: Self.noExceptions)
            #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
            let refused = try await command.run(
                arguments + ["--if-exists", "overwrite", "--proxy-user", "user:wrong"], shell: server.shell,
                environment: Self.noExceptions)
            #expect(refused.status == 6 && refused.errors.contains("rejects the name or the password"), "\(refused)")
        }
    }

    @Test(
        "Apache gets digests of the password for all segments, and the password itself never with --digest",
        .enabled(if: ProxyServer.apache != nil, "apache2 is not installed"))
    func digest() async throws {
        try await withCommand { command in
            let root = command.path("root")
            try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
            try Data(Self.content).write(to: URL(fileURLWithPath: root + "/file.bin"))
            let server = try ProxyServer.apache(in: command.directory, serving: root)
            let url = "http://127.0.0.1:\(server.port)/file.bin"
            for option in [[], ["--digest"]] {
                let outcome = try await command.run(
                    [
                        "-q", "-s", "4", "-o", "f.bin", "--if-exists", "overwrite", "--retry", "20", "-u",
                        "user:password",
                    ]
                        + option + [url], shell: server.shell)
                #expect(outcome.status == 0 && Self.holds(command), "\(outcome)")
            }
            let refused = try await command.run(
                ["-q", "-o", "g.bin", "--retry", "20", "-u", "user:wrong", url], shell: server.shell)
            #expect(refused.status == 6, "\(refused)")
        }
    }

    @Test(
        "The parser's message about a command line does not quote its secrets",
        arguments: [
            (["-H", "A; secret"], "The value 'A; secret' is invalid", "The value '…' is invalid"),
            (["-HA; secret"], "The value 'A; secret' is invalid", "The value '…' is invalid"),
            (["--user=a"], "The value 'a' is a value", "The value '…' is a value"),
            (["-r", "http://u:p@h/?q"], "The value 'http://u:p@h/?q' is", "The value 'h/?…' is"),
            (["list", "http://u:p@h"], "Unexpected argument 'http://u:p@h'", "Unexpected argument 'h'"),
            (["list", "--", "http://h?q"], "Unexpected argument 'http://h?q'", "Unexpected argument 'http://h?…'"),
            (["list", "a?b@c"], "Unexpected argument 'a?b@c'", "Unexpected argument 'a?b@c'"),
        ])
    func unquoted(arguments: [String], message: String, shown: String) {
        #expect(SecretArguments.removed(from: message, about: arguments) == shown)
    }

    @Test(
        "A command line that is refused is shown without its secrets",
        arguments: [
            ["http://u:secret@127.0.0.1:99999/f?secret"], ["list", "http://u:secret@h/f?secret"],
            ["resume", "http://u:secret@h/f?secret"], ["http://h/", "--mirror", "http://u:secret@h:0/?secret"],
            ["http://h/", "--resolve", "http://u:secret@h/f?secret"], ["http://h/", "-H", "X; secret"],
            ["http://h/", "--limit-rate", "http://u:secret@h/f?secret"], ["-i", "http://u:secret@h:0/f?secret"],
        ])
    func refused(arguments: [String]) async throws {
        try await withCommand { command in
            let outcome = try await command.run(arguments)
            #expect(outcome.status == 2 && !outcome.errors.isEmpty)
            #expect(!(outcome.errors + outcome.output).contains("secret"), "\(outcome)")
        }
    }

    @Test("The secret bytes of an argument are found, in any encoding")
    func hidden() {
        let hidden = { (text: String, isValue: Bool) in
            SecretArguments.secrets(in: Array(text.utf8), isValue: isValue).ranges
                .map { String(decoding: Array(text.utf8)[$0], as: UTF8.self) }
        }
        #expect(hidden("a:b", true) == ["a:b"])
        #expect(hidden("--user=a:b", false) == ["a:b"])
        #expect(hidden("--checksum=a", false) == [])
        #expect(hidden("-ua:b", false) == ["a:b"] && hidden("-vqua:b", false) == ["a:b"])
        #expect(hidden("-s4", false) == [] && hidden("-oub", false) == [])
        #expect(hidden("http://u:p@a@h/x@y", false) == ["u:p@a"])
        #expect(hidden("{http://u:p@a,http://v:q@b}/x", false) == ["u:p", "v:q"])
        #expect(hidden("--mirror=http://u:p@h/", false) == ["u:p"])
        #expect(hidden("http://h/x@y", false) == [])
        for word in ["-u", "-qu", "--user", "-vH", "--proxy"] {
            #expect(SecretArguments.secrets(in: Array(word.utf8), isValue: false).isNext, "\(word)")
        }
        #expect(!SecretArguments.secrets(in: Array("-ou".utf8), isValue: false).isNext)
        #expect(SecretArguments.secrets(in: [UInt8](repeating: 0xFF, count: 9), isValue: true).ranges == [0..<9])
    }
}
