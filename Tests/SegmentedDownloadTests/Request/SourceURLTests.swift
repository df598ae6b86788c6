import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

@Suite("Source URL")
struct SourceURLTests {
    @Test(
        "An invalid URL is shown without what may be its password",
        arguments: [
            "http://user:secret@a b/", "user:secret@host", "http://user:secret@\u{301}host /",
            "http://user:secret@[x]/",
        ])
    func password(text: String) {
        let error = #expect(throws: DownloadError.self) { try SourceURL(text) }
        #expect(error?.description.contains("secret") == false)
    }

    @Test(
        "A text that is not a URL is shown without what may be its password or its query",
        arguments: [
            ("http://u:secret@h:99999/f?t=secret", "h:99999/f?…"), ("http://h/%ff#secret", "http://h/%ff#…"),
            ("%zz/f?t=secret#x", "%zz/f?…"), ("http://h /f?mail=a@b&t=secret", "…"), ("http://u:se?cret@h /", "…"),
            ("http://u:secret@h@g /f", "g /f"), ("h:80:127.0.0.1", "h:80:127.0.0.1"), ("a@b", "b"), ("@?", "?…"),
            ("", ""), ("?", "?…"), ("a\u{1B}", "a\\u{1B}"),
        ])
    func withoutSecrets(text: String, shown: String) {
        #expect(SourceURL.withoutSecrets(text) == shown)
    }

    @Test(
        "Neither a malformed URL nor a redirect to one is reported with its secrets",
        arguments: [
            "http://u:secret@h:99999/f?secret", "http://[::1/f?secret", "http://u:secret@%zz/f?secret",
            "http://[localhost]/f?secret", "http://u:secret@0x7f.1/f#secret",
            "http://h/f\u{1}?secret",
            // More digits than an `Int` has.
            "http://h:99999999999999999999/f?secret", "http://u:secret@[::1]:18446744073709551617",
        ])
    func secrets(text: String) throws {
        let malformed = #expect(throws: DownloadError.self) { try SourceURL(text) }
        let base = try SourceURL("http://base/")
        let redirect = #expect(throws: DownloadError.self) { try base.resolve(location: text) }
        for error in [malformed, redirect] { #expect(error?.description.contains("secret") == false) }
    }

    @Test(
        "A user name or password that is not UTF-8 is refused, not dropped",
        arguments: ["http://u%bb@host/", "http://u:%ff@host/", "http://%c0%af:p@host/"])
    func credentials(text: String) {
        let error = #expect(throws: DownloadError.self) { try SourceURL(text) }
        #expect(error?.message.contains("not UTF-8") == true)
    }

    @Test(
        "Each character that may not occur is encoded, and valid escapes stay",
        arguments: [
            ("/a b%20c.bin", "/a%20b%20c.bin"), ("/[%EC%88%98]%20vol.5.mp3", "/%5B%EC%88%98%5D%20vol.5.mp3"),
            ("/p|q.bin?x=a|b", "/p%7Cq.bin?x=a%7Cb"), ("/100%.bin", "/100%25.bin"), ("/a%zz%2", "/a%25zz%252"),
            ("/s?sig=a%2Fb%3D&x=a+b c", "/s?sig=a%2Fb%3D&x=a+b%20c"), ("/é%C3%A9.bin", "/%C3%A9%C3%A9.bin"),
            ("/\"q\"<b>^`{}\\", "/%22q%22%3Cb%3E%5E%60%7B%7D%5C"), ("/?a=<b>#a#b", "/?a=%3Cb%3E"),
            ("/%E9.bin", "/%E9.bin"),
            ("/a/./b/../c", "/a/c"), ("/../../x/..", "/"), ("/.well-known/..x/%2e%2e/f", "/.well-known/..x/%2e%2e/f"),
            ("/日本.bin", "/%E6%97%A5%E6%9C%AC.bin"), ("/it's(1)!*;,@:$&=+~.bin", "/it's(1)!*;,@:$&=+~.bin"),
        ])
    func encoding(target: String, encoded: String) throws {
        #expect(try SourceURL("http://h\(target)").target == encoded)
        #expect(try SourceURL(" http://h\(target) ").target == encoded)
        #expect(try SourceURL("http://h\(target)").string == "http://h\(encoded)")
        let base = try SourceURL("http://h/dir/file")
        #expect(try base.resolve(location: target).target == encoded)
        #expect(try base.resolve(location: "http://h\(target)") == SourceURL("http://h\(encoded)"))
    }

    @Test(
        "One slash or three before a host are read as two",
        arguments: ["http:/h/f?a=//b", "http:///h/f?a=//b"])
    func slashes(text: String) throws {
        #expect(try SourceURL(text).string == "http://h/f?a=//b")
        #expect(try SourceURL("https://x/y").resolve(location: text).string == "http://h/f?a=//b")
        #expect(throws: DownloadError.self) { try SourceURL("http:////h/f") }
        #expect(throws: DownloadError.self) { try SourceURL("http:h/f") }
    }

    @Test(
        "An internationalized host is translated, and may be written in any of its forms",
        arguments: [
            "xn--bcher-kva.example", "bücher.example", "BÜCHER.example", "b%C3%BCcher.example", "bücher。example",
        ])
    func internationalized(host: String) throws {
        let url = try SourceURL("http://\(host):8080/f")
        #expect(url.origin.host == "xn--bcher-kva.example" && url.string == "http://xn--bcher-kva.example:8080/f")
        #expect(try SourceURL("http://a/").resolve(location: "//\(host):8080/f") == url)
    }

    @Test(
        "A host that no parser reads alike is refused",
        arguments: [
            "http://[localhost]/", "http://[127.0.0.1]/", "http://[::1%25lo]/", "http://[::g]/", "http://a%2fb/",
            "http://a%20b/", "http://a b/", "http://127.0.0.1%2f.evil/", "http://a<b/",
            "http://a\\b/",
        ])
    func host(text: String) {
        #expect(throws: DownloadError.self) { try SourceURL(text) }
    }

    @Test("A text that was not UTF-8 is refused, because other bytes would be requested")
    func replaced() {
        let error = #expect(throws: DownloadError.self) { try SourceURL("http://h/\u{FFFD}") }
        #expect(error?.message.contains("%XX") == true)
    }

    @Test("A plain URL is what the parser makes of it", arguments: 0..<64)
    func plain(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pieces = [
            "http", "https", "HTTP", "ftp", "://", ":/", "host", "a.example", "Host", "xn--bcher-kva.example", "a--b",
            "127.0.0.1", "127.1", "0x7f.1", "1.2.3.4.5", "h.1", "h.1.", "[::1]", "-", ".", "..", "_", ":80", ":443",
            ":0", ":080", ":65535", ":65536", ":", "/", "//", "/./", "/../", "/file", "f-1_2~.bin", "%20", "%", "?q",
            "ü", "@", "user@", "\\", "+", ";", "",
        ]
        func piece(of pieces: ArraySlice<String>) -> String {
            pieces[pieces.startIndex + Int(random.next() % UInt64(pieces.count))]
        }
        var plain = 0
        for _ in 0..<2000 {
            var text = ""
            if random.next() % 2 == 0 {
                text =
                    piece(of: ["http://", "https://"]) + piece(of: ["host", "a.example", "127.0.0.1", "h2.x-1.org"])
                text += piece(of: ["/", ":8080/", "/dir/"])
            }
            for _ in 0..<random.next() % 6 { text += piece(of: pieces[...]) }
            // A URL with a fragment takes the parser, which removes it.
            let parsed = try? SourceURL(text + "#")
            #expect((try? SourceURL(text)) == parsed, "\(text)")
            if SourceURL(plain: text) != nil { plain += 1 }
        }
        #expect(plain > 100)
    }
}
