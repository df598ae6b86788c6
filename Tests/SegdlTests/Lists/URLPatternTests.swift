import SegmentedDownload
import Testing

@testable import segdl

@Suite("Patterns of URLs")
struct URLPatternTests {
    @Test(
        "A pattern expands as in curl",
        arguments: [
            ("http://h/f", ["http://h/f"]), ("http://h/[1-3]", ["http://h/1", "http://h/2", "http://h/3"]),
            ("[008-010]", ["008", "009", "010"]), ("[0-10:5]", ["0", "5", "10"]), ("[a-e:2]", ["a", "c", "e"]),
            ("{a,b}[1-2]", ["a1", "a2", "b1", "b2"]), ("x{,y}", ["x", "xy"]), (#"\[1-2\]\{a\}"#, ["[1-2]{a}"]),
            ("http://[::1]/[1-2]", ["http://[::1]/1", "http://[::1]/2"]), (#"{a\,b,c}"#, ["a,b", "c"]),
            ("http://[fe80::1]:80/", ["http://[fe80::1]:80/"]), ("[5-5]", ["5"]), ("[A-B]", ["A", "B"]),
        ])
    func instances(text: String, urls: [String]) throws {
        #expect(try URLPattern(text).instances.map(\.url) == urls)
    }

    @Test(
        "A malformed pattern, or one with too many URLs, is refused",
        arguments: [
            "[", "{a", "}", "[a]", "[3-1]", "[1-2:0]", "[a-1]", "{}", "[1-2:]", "[-2]", "[1-1000000]", "[0-999][0-999]",
            "[1-99999999999999999999]", "[1-22059]/[1-836245708042502]", "[à-z]",
        ])
    func refused(text: String) {
        #expect(throws: DownloadError.self) { try URLPattern(text) }
    }

    @Test(
        "Literal brackets are percent-encoded, except in a host",
        arguments: [
            ("http://h/[1-2]{a}", "http://h/%5B1-2%5D%7Ba%7D"), ("http://[::1]:80/[1]", "http://[::1]:80/%5B1%5D"),
            ("http://[::1]?a[]=1", "http://[::1]?a%5B%5D=1"), ("http://[::1]", "http://[::1]"), ("", ""),
        ])
    func literal(url: String, encoded: String) {
        #expect(URLPattern.literal(url) == encoded)
    }

    @Test("A name can contain the value of each part that varies")
    func names() throws {
        let instance = try #require(try URLPattern("x{a,b}y[01-02]").instances.last)
        #expect(instance.name("#1_#2_#3_#_##1.bin") == "b_02_#3_#_#b.bin")
    }
}
