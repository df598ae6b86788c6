import Foundation
import SegmentedDownloadCore
import Synchronization
import Testing

@testable import SegmentedDownload

@Suite("Cookies")
struct CookieJarTests {
    private static func sent(_ jar: CookieJar, _ url: String, isNamed: Bool = true) throws -> String? {
        jar.fieldValue(for: try SourceURL(url), isNamed: isNamed)
    }

    private static func jar(_ fields: [String], from url: String) throws -> CookieJar {
        let jar = CookieJar { 1_000_000 }
        jar.note(fields, from: try SourceURL(url))
        return jar
    }

    @Test("A cookie goes back to the host that set it, whatever the port and scheme, and to no other host")
    func hostOnly() throws {
        let jar = try Self.jar(["a=1", "b = 2 ; HttpOnly"], from: "http://x.example:8080/dir/file")
        #expect(try Self.sent(jar, "http://x.example:8080/dir/other") == "a=1; b=2")
        #expect(try Self.sent(jar, "http://x.example:8080/dir") == "a=1; b=2")
        #expect(try Self.sent(jar, "http://x.example/dir/other") == "a=1; b=2")
        #expect(try Self.sent(jar, "https://x.example:8080/dir/other") == "a=1; b=2")
        for other in [
            "http://y.example:8080/dir/other", "http://sub.x.example:8080/dir/other", "http://x.example:8080/direct",
            "http://x.example:8080/",
        ] {
            #expect(try Self.sent(jar, other) == nil, "\(other)")
        }
    }

    @Test("A cookie with a domain goes to subdomains, but not to siblings, and not to a top-level domain")
    func domain() throws {
        let jar = try Self.jar(["a=1; Domain=.b.example; Path=/"], from: "https://a.b.example/")
        for host in ["a.b.example", "b.example", "c.b.example:8443"] {
            #expect(try Self.sent(jar, "https://\(host)/", isNamed: false) == "a=1")
        }
        // A domain that is the host itself includes its subdomains (RFC 6265, section 5.3).
        let own = try Self.jar(["a=1; Domain=b.example; Path=/"], from: "https://b.example/")
        #expect(try Self.sent(own, "https://a.b.example/") == "a=1")
        for host in ["ab.example", "xb.example", "b.example.org"] {
            #expect(try Self.sent(jar, "https://\(host)/") == nil)
        }
        for (field, url) in [
            ("a=1; Domain=example", "http://a.example/"), ("a=1; Domain=other.example", "http://a.example/"),
            ("a=1; Domain=0.0.1", "http://127.0.0.1/"), ("a=1; Secure", "http://a.example/"),
            ("=1", "http://a.example/"),
            ("a=\u{1}", "http://a.example/"), (String(repeating: "a", count: 5000) + "=1", "http://a.example/"),
        ] {
            #expect(try Self.sent(try Self.jar([field], from: url), url) == nil, "\(field.prefix(30))")
        }
    }

    /// A list like the system's, with a rule of each kind.
    private static let suffixes = PublicSuffixList(
        """
        // ===BEGIN ICANN DOMAINS===
        com
        uk
        co.uk
        *.ck
        !www.ck
        公司.cn // behind white space: a comment
        // ===BEGIN PRIVATE DOMAINS===
        github.io

        """)

    @Test("A public suffix gets no cookie, by the rules of the list")
    func publicSuffixes() throws {
        #expect(Self.suffixes.contains("xn--55qx5d.cn") && !Self.suffixes.contains("b.xn--55qx5d.cn"))
        let refused = [
            ("foo.com", "com"), ("a.co.uk", "co.uk"), ("a.co.uk", "uk"), ("me.github.io", "github.io"),
            ("a.b.ck", "b.ck"),
            ("a.b.ck", "ck"), ("a.unknown", "unknown"), ("a.www.ck", "ck"),
        ]
        let accepted = [
            ("a.foo.com", "foo.com"), ("a.b.co.uk", "b.co.uk"), ("x.me.github.io", "me.github.io"),
            ("a.www.ck", "www.ck"), ("a.c.b.ck", "c.b.ck"),
            ("x.b.unknown", "b.unknown"),
        ]
        for (isAccepted, cases) in [(false, refused), (true, accepted)] {
            for (host, domain) in cases {
                for (setter, attribute) in [
                    (host, domain), ("\(host).", domain), (host, ".\(domain)."), ("\(host).", "\(domain)."),
                ] {
                    let jar = CookieJar(suffixes: { Self.suffixes }, now: { 0 })
                    jar.note(["a=1; Path=/; Domain=\(attribute)"], from: try SourceURL("http://\(setter)/"))
                    for beside in ["http://other.\(domain)/", "http://other.\(domain)./"] {
                        let sent = try Self.sent(jar, beside)
                        #expect(sent == (isAccepted ? "a=1" : nil), "\(setter) \(attribute) \(beside)")
                    }
                }
            }
        }
    }

    @Test("Without a list only single labels are refused; a host that is a suffix has cookies of its own")
    func withoutList() throws {
        let jar = CookieJar(suffixes: { nil }, now: { 0 })
        jar.note(["a=1; Domain=com.", "b=1; Domain=com", "c=1; Domain=."], from: try SourceURL("http://foo.com./"))
        #expect(try Self.sent(jar, "http://bar.com./") == nil && Self.sent(jar, "http://bar.com/") == nil)
        jar.note(["a=1; Domain=co.uk"], from: try SourceURL("http://foo.co.uk/"))
        #expect(try Self.sent(jar, "http://bar.co.uk/") == "a=1", "without a list co.uk is not known as a suffix")
        let own = CookieJar(suffixes: { Self.suffixes }, now: { 0 })
        own.note(["a=1; Path=/; Domain=github.io"], from: try SourceURL("http://github.io/"))
        #expect(try Self.sent(own, "http://github.io/") == "a=1")
        #expect(try Self.sent(own, "http://me.github.io/") == nil)
        // The last of several Domain attributes counts.
        own.note(["b=1; Path=/; Domain=foo.com; Domain=a.foo.com"], from: try SourceURL("http://a.foo.com/"))
        #expect(try Self.sent(own, "http://foo.com/") == nil)
    }

    @Test("A cookie file's entry for all hosts below a public suffix applies to none of them")
    func fileOfSuffix() throws {
        let jar = CookieJar(suffixes: { Self.suffixes }, now: { 0 })
        let lines = [".co.uk\tTRUE\t/\tFALSE\t0\tall\t1", ".b.co.uk.\tTRUE\t/\tFALSE\t0\town\t1"]
        try jar.load(text: lines.joined(separator: "\n"), name: "cookies")
        #expect(try Self.sent(jar, "http://a.b.co.uk/") == "own=1")
        #expect(try Self.sent(jar, "http://b.co.uk./") == "own=1")
        #expect(try Self.sent(jar, "http://c.co.uk/") == nil)
    }

    @Test(
        "The system's own list",
        .enabled(if: PublicSuffixList.system != nil, "the package publicsuffix is not installed"),
        arguments: [
            ("com", true), ("co.uk", true), ("github.io", true), ("foo.ck", true), ("www.ck", false),
            ("example.com", false),
            ("xn--55qx5d.cn", true), ("xn--aroport-bya.ci", true), ("city.kobe.jp", false), ("other.kobe.jp", true),
        ])
    func systemList(domain: String, isSuffix: Bool) {
        #expect(PublicSuffixList.system?.contains(domain) == isSuffix)
    }

    @Test(
        "Internationalized names are encoded by RFC 3492",
        arguments: [
            ("bücher", "xn--bcher-kva"), ("münchen.de", "xn--mnchen-3ya.de"),
            ("他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"),
            ("ليهمابتكلموشعربي؟", "xn--egbpdaj6bu4bxfgehfvwxn"), ("3年b組金八先生", "xn--3b-ww4c5e180e575a65lsy2b"),
            ("a.b", "a.b"),
        ])
    func punycode(name: String, encoded: String) {
        #expect(Punycode.encoded(Substring(name)) == encoded)
    }

    @Test(
        "A later cookie replaces an earlier one, an expired one is removed, and Max-Age takes precedence over Expires")
    func expiry() throws {
        let time = Mutex(1_000_000.0)
        let jar = CookieJar { time.withLock { $0 } }
        let url = try SourceURL("http://a.example/x")
        jar.note(["a=1; Path=/", "b=1; Max-Age=100; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], from: url)
        jar.note(["a=2; Path=/", "c=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], from: url)
        #expect(
            jar.fieldValue(for: url, isNamed: true) == "b=1; a=2"
                || jar.fieldValue(for: url, isNamed: true) == "a=2; b=1")
        time.withLock { $0 += 101 }
        jar.note(["a=; Path=/; Max-Age=0"], from: url)
        #expect(jar.fieldValue(for: url, isNamed: true) == nil)
    }

    @Test(
        "The date of a cookie is read whatever its form",
        arguments: [
            ("Wed, 01 Jan 2031 00:00:01 GMT", 1_924_992_001), ("Wed, 01-Jan-31 00:00:01 GMT", 1_924_992_001),
            ("Wednesday, 01-Jan-2031 00:00:01 GMT", 1_924_992_001), ("Wed Jan  1 00:00:01 2031", 1_924_992_001),
            ("1 jan 2031 0:0:1", 1_924_992_001), ("2031 January 01 00:00:01x", 1_924_992_001),
            ("01/Jan/31 00:00:01 +0100", 1_924_992_001), ("00:00:01 1 Jan 31", 1_924_992_001),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Mon, 31 Dec 99 23:59:59 GMT", 946_684_799),
            ("Wed, 30 Feb 2031 00:00:00 GMT", nil), ("Wed, 01 Jan 2031 24:00:00 GMT", nil),
            ("01 Jan 1600 00:00:00", nil),
            ("01 Jan 2031", nil), ("00:00:00 Jan 2031", nil), ("1 1 2031 00:00:00", nil), ("soon", nil), ("", nil),
        ] as [(String, Int64?)])
    func date(text: String, seconds: Int64?) {
        #expect(HTTPDate(cookieDate: text)?.secondsSinceEpoch == seconds)
    }

    @Test("A server that keeps setting cookies loses its oldest, and those of a file stay")
    func bounded() throws {
        let jar = CookieJar { 0 }
        try jar.load(text: "a.example\tFALSE\t/\tFALSE\t0\tmine\t1\n", name: "cookies")
        let url = try SourceURL("http://a.example/")
        for number in 0..<400 { jar.note(["n\(number)=1"], from: url) }
        let sent = try #require(jar.fieldValue(for: url, isNamed: true))
        #expect(sent.contains("mine=1") && sent.contains("n399=1") && !sent.contains("n50=1"))
        #expect(sent.split(separator: ";").count == 301)
    }

    @Test("A file's cookies go to hosts that the user named, by the file's rules")
    func file() throws {
        let jar = CookieJar { 1000 }
        let lines = [
            "# Netscape HTTP Cookie File", "", ".a.example\tTRUE\t/\tFALSE\t0\tall\t1",
            "a.example\tFALSE\t/dir\tTRUE\t2000\tsecure\t2", "#HttpOnly_b.example\tFALSE\t/\tFALSE\t999\told\t3",
            "b.example\tFALSE\t/\tFALSE\t0\tempty\t",
        ]
        try jar.load(text: lines.joined(separator: "\r\n"), name: "cookies")
        #expect(try Self.sent(jar, "https://a.example/dir/x") == "secure=2; all=1")
        #expect(try Self.sent(jar, "http://sub.a.example/dir/x") == "all=1")
        #expect(try Self.sent(jar, "http://b.example/") == "empty=")
        #expect(try Self.sent(jar, "https://a.example/dir/x", isNamed: false) == nil)
        // As Python's cookie jar and editors of Windows write it, with a line that is no cookie.
        let others = "\u{FEFF}c.example\tFALSE\t/\tFALSE\t\tsid\tabc\nsecret line\n"
        try jar.load(text: others, name: "cookies")
        #expect(try Self.sent(jar, "http://c.example/") == "sid=abc")
        let error = #expect(throws: DownloadError.self) {
            try jar.load(text: "# x\na=1; b=secret\n", name: "cookies")
        }
        #expect(error?.message.hasPrefix("cookies, line 2") == true && error?.message.contains("secret") == false)
    }
}
