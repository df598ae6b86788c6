import Testing

@testable import SegmentedDownload

@Suite("Proxies")
struct ProxyPolicyTests {
    private static func proxy(_ environment: [String: String], _ url: String) throws -> String? {
        try ProxyPolicy(environment: environment).proxy(for: SourceURL(url).origin)?.description
    }

    @Test("The environment is read like curl does")
    func environment() throws {
        let all = ["http_proxy": "h:1", "HTTPS_PROXY": "http://s:2", "ALL_PROXY": "a:3"]
        #expect(try Self.proxy(all, "http://x/") == "h:1")
        #expect(try Self.proxy(all, "https://x/") == "s:2")
        #expect(try Self.proxy(["ALL_PROXY": "a"], "https://x/") == "a:1080")
        #expect(try Self.proxy(all.merging(["https_proxy": ""]) { $1 }, "https://x/") == nil)
        // A CGI script's environment has the client's `Proxy:` field.
        #expect(try Self.proxy(["HTTP_PROXY": "evil:1"], "http://x/") == nil)
        let error = #expect(throws: DownloadError.self) {
            try Self.proxy(["http_proxy": "ftp://u:secret@x"], "http://x/")
        }
        // A variable that is not needed does not matter.
        #expect(try Self.proxy(["https_proxy": "ftp://x"], "http://x/") == nil)
        #expect(try Self.proxy(["all_proxy": "ftp://x", "http_proxy": "h:1"], "http://x/") == "h:1")
        #expect(try Self.proxy(["all_proxy": "ftp://x", "no_proxy": "x"], "http://x/") == nil)
        var policy = ProxyPolicy(environment: ["all_proxy": "ftp://x"])
        policy.http = nil
        #expect(try policy.proxy(for: SourceURL("http://x/").origin) == nil)
        #expect(error?.message.hasPrefix("http_proxy") == true && error?.description.contains("secret") == false)
    }

    @Test(
        "Hosts are excepted by name with subdomains, by address, network or port",
        arguments: [
            ("*", "http://x.example/", true), ("x.example", "http://x.example/", true),
            ("x.example", "http://a.x.example:81/", true), (".x.example", "http://x.example/", true),
            ("*.x.example", "http://a.x.example/", true), ("x.example", "http://ax.example/", false),
            ("other, X.Example", "http://x.example/", true), ("x.example:81", "http://x.example:81/", true),
            ("x.example:81", "http://x.example/", false), ("127.0.0.1", "http://127.0.0.1/", true),
            ("127.0.0.0/8", "http://127.9.9.9/", true), ("128.0.0.0/8", "http://127.0.0.1/", false),
            ("10.0.0.0/9", "http://10.128.0.1/", false), ("10.0.0.0/9", "http://10.127.0.1/", true),
            ("[::1]", "http://[::1]/", true), ("::1", "http://[::1]:8080/", true), ("[::1]:81", "http://[::1]/", false),
            ("fe80::/10", "http://[fe80::1]/", true), ("0.0.1", "http://127.0.0.1/", false), ("", "http://x/", false),
            (".", "http://x/", false), ("10.0.0.0/99", "http://10.0.0.1/", false),
        ])
    func exceptions(list: String, url: String, isExcepted: Bool) throws {
        #expect(try (Self.proxy(["http_proxy": "p:1", "no_proxy": list], url) == nil) == isExcepted)
    }

    @Test("A proxy's URL has a scheme, a host and a port, and no path")
    func url() throws {
        #expect(try Proxy("socks5h://[::1]:9").description == "[::1]:9")
        #expect(try Proxy("http://u:p%40@h:1").credentials == .basic(user: "u", password: "p@"))
        #expect(
            try Proxy("http://h:1").authenticated(user: "a", password: "b").credentials
                == .basic(user: "a", password: "b"))
        #expect(try Proxy("http://h/path").description == "h:1080")
        #expect(try Proxy("socks://h:1/").kind == .socks5h && Proxy("SOCKS4A://h").kind == .socks4a)
        #expect(try Proxy("socks5://u:p%40@h").password == "p@")
        let long = String(repeating: "p", count: 256)
        for text in [
            "", "http://", "gopher://h", "http://h:0", "h:x", "socks5://u:\(long)@h", "http://u%3a:p@h",
        ] {
            #expect(throws: DownloadError.self, "\(text)") { try Proxy(text) }
        }
    }

    @Test("An address for a host and port has curl's syntax")
    func hostAddress() throws {
        #expect(try HostAddress("A.example:80:127.0.0.1").host == "a.example")
        #expect(try HostAddress("a:443:[::1]").address == "::1")
        #expect(try HostAddress("a:443:::1").address == "::1")
        for text in ["", "a:80", "a::127.0.0.1", ":80:127.0.0.1", "a:80:b", "a:0:127.0.0.1"] {
            #expect(throws: DownloadError.self, "\(text)") { try HostAddress(text) }
        }
        // A URL in its place.
        for text in ["http://u:secret@h/f?secret", "http:80:u:secret@h/f?secret"] {
            let error = #expect(throws: DownloadError.self) { try HostAddress(text) }
            #expect(error?.description.contains("secret") == false)
        }
    }
}
