import HTTPTypes
import Testing

@testable import SegmentedDownloadCore

@Suite("Challenges")
struct AuthChallengeTests {
    private static func text(_ values: [String], _ names: [String]) -> [String] {
        AuthChallenge.all(in: values).map { challenge in
            ([challenge.scheme] + names.compactMap { name in challenge[name].map { "\(name)=\($0)" } })
                .joined(separator: " ")
        }
    }

    @Test(
        "Challenges are read from one line and from several, with commas inside and between",
        arguments: [
            ([#"Basic realm="a, b""#], ["Basic realm=a, b"]),
            (
                [#"Digest realm="r", nonce="n=1", qop="auth", Basic realm="x""#],
                ["Digest realm=r nonce=n=1", "Basic realm=x"]
            ),
            (["Negotiate", "NTLM"], ["Negotiate", "NTLM"]),
            (["Negotiate, NTLM, basic realm = q"], ["Negotiate", "NTLM", "basic realm=q"]),
            (["Negotiate oRQwEg==, Digest nonce=n"], ["Negotiate", "Digest nonce=n"]),
            ([#"Digest realm="a\"b\\c",nonce="1",nonce="2""#], [#"Digest realm=a"b\c nonce=1"#]),
            ([#",, Basic realm="x",,"#], ["Basic realm=x"]),
            (["Digest NONCE=1, Realm=\"\""], ["Digest realm= nonce=1"]),
        ])
    func read(values: [String], expected: [String]) {
        #expect(Self.text(values, ["realm", "nonce"]) == expected)
    }

    @Test(
        "What cannot be read is skipped, and many challenges are cut",
        arguments: ["", "=", "=x", "\"", "Basic realm=\"open", "@@@", ",=,=,", "A \"\u{1}\"", "Basic =", "é"])
    func unreadable(value: String) {
        for challenge in AuthChallenge.all(in: [value, value]) { #expect(!challenge.scheme.isEmpty) }
        #expect(AuthChallenge.all(in: [String](repeating: "A", count: 100)).count == 16)
    }

    @Test("The field that counts depends on the status")
    func status() {
        let head = { (status: Int) in
            ResponseHead(status: status, fields: [.wwwAuthenticate: "Basic", .proxyAuthenticate: "Digest nonce=n"])
        }
        #expect(head(401).challenges.map(\.scheme) == ["Basic"])
        #expect(head(407).challenges.map(\.scheme) == ["Digest"])
    }
}
