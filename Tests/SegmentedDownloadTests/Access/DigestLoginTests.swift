import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// The examples of the RFCs, and the rules of RFC 7616 §3.4.
@Suite("Digest logins")
struct DigestLoginTests {
    private static func challenge(_ text: String) -> DigestChallenge? {
        DigestChallenge.best(of: AuthChallenge.all(in: [text]))
    }

    private static func response(_ answer: String?) -> String? {
        AuthChallenge.all(in: [answer ?? ""]).first?["response"]
    }

    @Test("The answers are those of RFC 7616 §3.9.1 and RFC 2617 §3.5")
    func examples() throws {
        let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
        let opaque = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        for (algorithm, expected) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let challenge = try #require(
                Self.challenge(
                    #"Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\#(algorithm), "#
                        + #"nonce="\#(nonce)", opaque="\#(opaque)""#))
            let answer = challenge.answer(
                user: "Mufasa", password: "Circle of Life", method: "GET", target: "/dir/index.html", count: 1,
                clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
            #expect(Self.response(answer) == expected)
            let fields = try #require(AuthChallenge.all(in: [answer]).first)
            #expect(fields["nc"] == "00000001" && fields["qop"] == "auth" && fields["opaque"] == opaque)
            #expect(fields["username"] == "Mufasa" && fields["uri"] == "/dir/index.html" && fields["nonce"] == nonce)
        }
        let old = try #require(
            Self.challenge(
                #"Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#))
        let answer = old.answer(
            user: "Mufasa", password: "Circle Of Life", method: "GET", target: "/dir/index.html", count: 1,
            clientNonce: "0a4f113b")
        #expect(Self.response(answer) == "6629fae49393a05397450978507c4ef1")
    }

    @Test("Without a quality the answer is that of RFC 2069, and with -sess the secret depends on the client's nonce")
    func forms() throws {
        let answer = { (text: String, nonce: String) in
            try #require(Self.challenge(text)).answer(
                user: "u", password: "p", method: "GET", target: "/", count: 2, clientNonce: nonce)
        }
        // echo -n "$(echo -n u:r:p | md5sum):n:$(echo -n GET:/ | md5sum)" | md5sum, without the dashes.
        let plain = try answer(#"Digest realm="r", nonce="n""#, "c")
        #expect(Self.response(plain) == "f23121ca97143c6b358da620220c83b4")
        #expect(!plain.contains("nc=") && !plain.contains("cnonce") && !plain.contains("algorithm"))
        let session = #"Digest realm="r", nonce="n", qop="auth", algorithm=MD5-sess"#
        #expect(try Self.response(answer(session, "c")) != Self.response(answer(session, "d")))
        #expect(try answer(session, "c").contains("nc=00000002"))
        let hashed = try answer(#"Digest realm="r", nonce="n", qop="auth", userhash=true"#, "c")
        #expect(!hashed.contains("username=\"u\"") && hashed.contains("userhash=true"))
        let quoted = try answer(#"Digest realm="a\"b\\c", nonce="n""#, "c")
        #expect(quoted.contains(#"realm="a\"b\\c""#))
    }

    @Test(
        "Challenges with an unknown algorithm or quality, or without a nonce, are not answered",
        arguments: [
            "Basic realm=r", "Digest realm=r", "Digest nonce=n, algorithm=SHA-512-256", "Digest nonce=n, qop=auth-int",
            "NTLM", "",
        ])
    func unanswered(text: String) {
        #expect(Self.challenge(text) == nil)
    }

    @Test("SHA-256 is preferred to MD5, wherever it stands")
    func preferred() {
        let text = #"Digest realm="r", nonce="1", algorithm=MD5, Digest realm="r", nonce="2", algorithm=SHA-256"#
        #expect(Self.challenge(text)?.nonce == "2")
    }

    @Test("A nonce that was answered means a wrong password, unless it is stale; others begin a login")
    func begin() throws {
        let logins = DigestLogins()
        let challenges = { (text: String) in AuthChallenge.all(in: [text]) }
        let fresh = challenges(#"Digest realm="r", nonce="1", qop="auth""#)
        #expect(logins["a"] == nil)
        let login = try #require(logins.begin(fresh, by: "a", after: "Basic xyz"))
        #expect(logins["a"] === login && logins["b"] == nil)
        let sent = login.answer(user: "u", password: "p", method: "GET", target: "/")
        let next = login.answer(user: "u", password: "p", method: "GET", target: "/")
        #expect(sent.contains("nc=00000001") && next.contains("nc=00000002"))
        #expect(logins.begin(fresh, by: "a", after: sent) == nil)
        let stale = challenges(#"Digest realm="r", nonce="1", qop="auth", stale=TRUE"#)
        #expect(logins.begin(stale, by: "a", after: sent) != nil)
        #expect(logins.begin(challenges("Digest nonce=2"), by: "a", after: sent)?.challenge.nonce == "2")
        #expect(logins.begin(challenges("Basic realm=r"), by: "a", after: nil) == nil)
    }
}
