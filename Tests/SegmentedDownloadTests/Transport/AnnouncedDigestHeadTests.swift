import HTTPTypes
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Digests in response heads, in the formats of several services.
@Suite("Digests in heads")
struct AnnouncedDigestHeadTests {
    /// What the response delivers of a representation of 100 bytes.
    enum Body: CaseIterable, Sendable {
        case whole
        /// A 206 with all of it.
        case wholeRange
        case part
    }

    private static func fields(_ pairs: [(String, String)]) throws -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in pairs {
            fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        return fields
    }

    private static func announced(
        _ pairs: [(String, String)], _ body: Body = .part, linked: LinkedFile? = nil
    ) throws -> AnnouncedDigests {
        let lowerBound: Int64 = body == .part ? 50 : 0
        let request = RangeRequest(lowerBound: lowerBound)
        var said = try Self.fields(pairs)
        said[.contentLength] = "\(100 - lowerBound)"
        if body != .whole { said[.contentRange] = "bytes \(lowerBound)-99/100" }
        let head = ResponseHead(status: body == .whole ? 200 : 206, fields: said)
        let response = RangeResponse(request: request, head: head)
        try #require(response.hasBytes)
        return AnnouncedDigests(head, of: response, linked: linked)
    }

    private static func representation(_ pairs: [(String, String)], _ body: Body = .part) throws -> String? {
        try Self.announced(pairs, body).representation.first?.description
    }

    // MARK: Trailers

    @Test("Trailers state any number of digests of the representation, and one of the body")
    func trailing() throws {
        let (sha256, sha512, md5) = (
            "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:",
            "sha-512=:\(String(repeating: "A", count: 86))==:",
            "md5=AAAAAAAAAAAAAAAAAAAAAA=="
        )
        let said = AnnouncedDigests.trailing(
            try Self.fields([
                ("Repr-Digest", "\(sha512), \(sha256)"), ("Digest", md5), ("Content-Digest", "\(sha512), \(sha256)"),
            ]))
        #expect(said.representation.map(\.algorithm) == [.sha256, .sha512, .md5])
        #expect(said.content == said.representation.first)
        let nothing = AnnouncedDigests.trailing(
            try Self.fields([("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA=="), ("Repr-Digest", ",,"), ("ETag", "\"1\"")]))
        #expect(nothing.representation.isEmpty && nothing.content == nil)
    }

    @Test(
        "A head says that a digest follows if Trailer names one of the fields, in any case",
        arguments: [
            ("Content-Digest", true), ("x-a, repr-DIGEST\t,x-b", true), ("digest", true), ("X-Digest", false),
            ("", false),
            (",", false), ("Content-MD5", false), ("\"", false),
        ])
    func follow(value: String, follows: Bool) throws {
        let head = ResponseHead(status: 200, fields: try Self.fields([("Trailer", "ETag"), ("Trailer", value)]))
        #expect(AnnouncedDigests.follow(head) == follows)
    }

    // MARK: RFC 9530, 3230 and 1864

    @Test("Base64 may lack its padding", arguments: ["=", ""])
    func padding(end: String) throws {
        let digits = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg"
        let expected = "sha256=44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38"
        #expect(try Self.representation([("Repr-Digest", "sha-256=:\(digits)\(end):")]) == expected)
        #expect(try Self.representation([("Digest", "SHA-256=\(digits)\(end)")]) == expected)
    }

    @Test("Of a part, digests of the whole file are those of another file only if they differ from earlier ones")
    func part() throws {
        let head = ResponseHead(
            status: 206,
            fields: try Self.fields([("Content-Range", "bytes 10-19/100"), ("Content-Length", "10"), ("ETag", "\"a\"")])
        )
        let part = ResourcePart(DownloadOptions.Part(first: 10, last: 19))
        let one = try #require(ExpectedDigest("crc32=00000001"))
        let other = try #require(ExpectedDigest("crc32=00000002"))
        func response(_ request: RangeRequest, _ digest: ExpectedDigest) -> RangeResponse {
            RangeResponse(request: request, head: head, locator: nil, part: part).stating([digest], to: request)
        }
        let first = response(RangeRequest(), one)
        let resource = try #require(first.resource)
        #expect(resource.isPart && resource.digests == [one] && resource.ownDigests.isEmpty && !first.hasAllBytes)
        let next = RangeRequest(lowerBound: 0, identity: resource)
        #expect(response(next, one).resource?.digests == [one])
        guard case .changed = response(next, other) else {
            Issue.record("\(response(next, other))")
            return
        }
    }

    @Test(
        "A malformed digest, or one of an unknown algorithm, is ignored",
        arguments: ["sha-256=:AAAA:", "sha-256=:", "sha-256=:A=A=:", "unixsum=:AAAA:", "sha-256", "\u{7F}", ",,"])
    func isIgnored(value: String) throws {
        for name in ["Repr-Digest", "Content-Digest", "Digest", "Content-MD5", "x-goog-hash", "x-amz-checksum-sha256"] {
            let announced = try Self.announced([(name, value), ("x-goog-stored-content-encoding", "identity")], .whole)
            #expect(announced.representation.isEmpty && announced.content == nil, "\(name)")
        }
    }

    @Test(
        "Each digest has the name of its field",
        arguments: [
            ("Repr-Digest", "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"),
            ("Content-Digest", "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"),
            ("Digest", "md5=HUXZLQLMuI/KZ5KDcJPcOA=="), ("Content-MD5", "HUXZLQLMuI/KZ5KDcJPcOA=="),
            ("x-goog-hash", "md5=HUXZLQLMuI/KZ5KDcJPcOA=="), ("x-amz-checksum-crc32", "AAAAAA=="),
        ])
    func field(name: String, value: String) throws {
        let announced = try Self.announced([(name, value), ("x-goog-stored-content-encoding", "identity")], .whole)
        #expect(announced.representation.map { $0.field?.lowercased() } == [name.lowercased()])
    }

    @Test("A refusal's digests apply to its own text")
    func refusal() throws {
        let head = ResponseHead(
            status: 416,
            fields: try Self.fields([("Repr-Digest", "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:")]))
        let response = RangeResponse(request: RangeRequest(), head: head)
        #expect(AnnouncedDigests(head, of: response).representation.isEmpty)
    }

    @Test("Digest covers the whole file, its names are in either case, and the strongest one counts")
    func digest() throws {
        // The example of RFC 3230, section 4.3.2.
        #expect(
            try Self.representation([("Digest", "md5=HUXZLQLMuI/KZ5KDcJPcOA==")])
                == "md5=1d45d92d02ccb88fca6792837093dc38")
        let sha1 = "sha1=da39a3ee5e6b4b0d3255bfef95601890afd80709"
        #expect(
            try Self.representation([("Digest", "SHA=2jmj7l5rSw0yVb/vlWAYkK/YBwk=,unixsum=30637")]) == sha1)
        let sha512 =
            "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
        let sha256 = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
        for lines in [["Sha-512=\(sha512), sha-256=\(sha256)"], ["sha-512=\(sha512)", " SHA-256=\(sha256) "]] {
            #expect(
                try Self.representation(lines.map { ("Digest", $0) })
                    == "sha256=44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38")
        }
        #expect(try Self.representation([("Digest", "sha-512=\(sha512)")])?.hasPrefix("sha512=cf83e1357eef") == true)
    }

    @Test(
        "A Digest in hexadecimal digits, in base64 of those or with trailing text is ignored",
        arguments: [
            "MD5=d41d8cd98f00b204e9800998ecf8427e", "SHA=da39a3ee5e6b4b0d3255bfef95601890afd80709",
            // The example of RFC 5843, section 2.
            "SHA-256=MWVkMWQxYTRiMzk5MDQ0MzI3NGU5NDEyZTk5OWY1ZGFmNzgyZTJlODYzYjRjYzFhOTlmNTQwYzI2M2QwM2U2MQ==",
            "MD5=HUXZLQLMuI/KZ5KDcJPcOA== x", "MD5 =HUXZLQLMuI/KZ5KDcJPcOA==", "MD5=HUXZLQLMuI/KZ5KDcJPcO",
        ])
    func wrongForm(value: String) throws {
        #expect(try Self.representation([("Digest", value)]) == nil)
    }

    @Test("Contradicting digests of one algorithm are ignored, and the next algorithm counts")
    func contradiction() throws {
        let one = "md5=HUXZLQLMuI/KZ5KDcJPcOA=="
        let other = "md5=Q2hlY2sgSW50ZWdyaXR5IQ=="
        #expect(try Self.representation([("Digest", "\(one), \(one)")]) == "md5=1d45d92d02ccb88fca6792837093dc38")
        #expect(try Self.representation([("Digest", "\(one), \(other)")]) == nil)
        #expect(
            try Self.representation([
                ("Digest", "sha-256=RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=, \(one)"),
                ("Repr-Digest", "sha-256=:\(String(repeating: "A", count: 43))=:"),
            ]) == "md5=1d45d92d02ccb88fca6792837093dc38")
    }

    @Test("A Content-Digest does not make the digest of the representation ignored", arguments: Body.allCases)
    func contentBesideRepresentation(body: Body) throws {
        let right = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
        let other = "sha-256=:\(String(repeating: "A", count: 43))=:"
        let hex = "44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38"
        let both = try Self.announced([("Repr-Digest", right), ("Content-Digest", other)], body)
        #expect(both.representation.map(\.hex) == [hex] && both.content?.hex == String(repeating: "0", count: 64))
        let alone = try Self.announced([("Content-Digest", right)], body)
        #expect(alone.representation.map(\.hex) == (body == .part ? [] : [hex]))
    }

    @Test(
        "Content-MD5 is the file's digest if the response is the whole file, and otherwise ignored",
        arguments: Body.allCases)
    func contentMD5(body: Body) throws {
        // The example of RFC 1864, section 2.
        let value = try Self.representation([("Content-MD5", "Q2hlY2sgSW50ZWdyaXR5IQ==")], body)
        #expect(value == (body == .part ? nil : "md5=436865636b20496e7465677269747921"))
        let twice = [("Content-MD5", "Q2hlY2sgSW50ZWdyaXR5IQ=="), ("Content-MD5", "HUXZLQLMuI/KZ5KDcJPcOA==")]
        #expect(try Self.representation(twice, body) == nil)
    }

    // MARK: Google Cloud Storage

    private static let googleHash = [
        ("x-goog-hash", "crc32c=4gcgLQ=="), ("x-goog-hash", "md5=CS9tHYTtyFntzj7B9nkkJQ=="),
    ]

    @Test("x-goog-hash is of the object, in one line or two, on parts, too", arguments: Body.allCases)
    func googleHash(body: Body) throws {
        let stored = [("x-goog-stored-content-encoding", "identity"), ("x-goog-stored-content-length", "100")]
        let md5 = "md5=092f6d1d84edc859edce3ec1f6792425"
        #expect(try Self.representation(Self.googleHash + stored, body) == md5)
        let joined = [("x-goog-hash", "crc32c=4gcgLQ==,md5=CS9tHYTtyFntzj7B9nkkJQ==")]
        #expect(try Self.representation(joined + stored, body) == md5)
        // A composite object.
        #expect(try Self.representation([Self.googleHash[0]] + stored, body) == "crc32c=e207202d")
    }

    @Test(
        "x-goog-hash is not of what is sent in another coding than it is stored in",
        arguments: [
            ([("x-goog-stored-content-encoding", "gzip")], false),
            ([("x-goog-stored-content-encoding", "gzip"), ("Content-Encoding", "gzip")], true),
            ([("x-goog-stored-content-encoding", "identity"), ("Content-Encoding", "gzip")], false),
            ([("x-goog-stored-content-encoding", "identity"), ("x-goog-stored-content-length", "99")], false),
            ([], false),
        ])
    func transcoding(stored: [(String, String)], isOfTheFile: Bool) throws {
        #expect(try (Self.representation(Self.googleHash + stored, .whole) != nil) == isOfTheFile)
    }

    // MARK: Amazon S3

    @Test("An S3 checksum of the full object is the file's, where all of it comes", arguments: Body.allCases)
    func amazonFullObject(body: Body) throws {
        let type = ("x-amz-checksum-type", "FULL_OBJECT")
        let crc32 = [("x-amz-checksum-crc32", "+SDIDA=="), type]
        #expect(try Self.representation(crc32, body) == (body == .part ? nil : "crc32=f920c80c"))
        let sha1 = [("x-amz-checksum-sha1", "CBB1y8xhBCot1HoCMQCx18NR2tU=")]
        #expect(
            try Self.representation(crc32 + sha1, body)
                == (body == .part ? nil : "sha1=081075cbcc61042a2dd47a023100b1d7c351dad5"))
        for (name, value, hex) in [
            ("crc64nvme", "r/7LBH/0eeA=", "affecb047ff479e0"), ("crc32c", "NIBF4Q==", "348045e1"),
        ] {
            let digest = try Self.representation([("x-amz-checksum-\(name)", value), type], body)
            #expect(digest == (body == .part ? nil : "\(name)=\(hex)"))
        }
    }

    @Test("Without a type an S3 checksum is the full object's only with a 200", arguments: Body.allCases)
    func amazonWithoutType(body: Body) throws {
        let sha256 = [("x-amz-checksum-sha256", "rVWtNbadtsaKXJAcgWPWjifHzJaXde/iV4jaJAOdivc=")]
        #expect((try Self.representation(sha256, body) != nil) == (body == .whole))
    }

    @Test("An S3 checksum that is computed from those of parts is not the file's", arguments: Body.allCases)
    func amazonComposite(body: Body) throws {
        let composite = ("x-amz-checksum-sha256", "rVWtNbadtsaKXJAcgWPWjifHzJaXde/iV4jaJAOdivc=-3")
        #expect(try Self.representation([composite], body) == nil)
        #expect(try Self.representation([composite, ("x-amz-checksum-type", "COMPOSITE")], body) == nil)
        // As sent for a range request, although the range is the whole object.
        for bare in [("x-amz-checksum-crc32", "UymZPQ=="), ("x-amz-checksum-sha256", String(composite.1.dropLast(2)))] {
            #expect(try Self.representation([bare, ("x-amz-checksum-type", "COMPOSITE")], body) == nil)
            #expect(try body == .whole || Self.representation([bare], body) == nil)
        }
    }

    // MARK: Hugging Face

    private static let tag = "a7a17d6d844b5de815ccab5f42cad6d24496db3850a2a43d8258221018ce87d2"

    private static func linked(_ tag: String, size: String? = "100", _ more: [(String, String)] = []) throws
        -> LinkedFile?
    {
        LinkedFile(
            try Self.fields([("X-Linked-Etag", tag)] + (size.map { [("X-Linked-Size", $0)] } ?? []) + more))
    }

    @Test("A linked tag of 64 digits is the SHA-256 of the file the redirect leads to", arguments: Body.allCases)
    func linkedTag(body: Body) throws {
        let linked = try Self.linked("\"\(Self.tag)\"")
        #expect(linked != nil)
        #expect(try Self.announced([], body, linked: linked).representation.first?.description == "sha256=\(Self.tag)")
    }

    @Test("A linked tag is not the SHA-256 of a file of another length, or in a coding")
    func linkedElsewhere() throws {
        let longer = try #require(try Self.linked("\"\(Self.tag)\"", size: "536063208"))
        #expect(try Self.announced([], linked: longer).representation.isEmpty)
        let linked = try #require(try Self.linked("\"\(Self.tag)\""))
        #expect(try Self.announced([("Content-Encoding", "gzip")], linked: linked).representation.isEmpty)
    }

    @Test(
        "A tag that is weak, unquoted, a Git hash or of another length is not used as a SHA-256",
        arguments: [
            "W/\"\(tag)\"", tag, "\"a661b1a138dac6dc5590367402d100765010ffd6\"", "\"\(tag)0\"", "\"\"", "\"-\"",
        ])
    func noLinkedTag(value: String) throws {
        #expect(try Self.linked(value) == nil)
    }

    @Test("A linked tag without a length, or that equals the Xet hash, is not used as a SHA-256")
    func doubtfulTag() throws {
        #expect(try Self.linked("\"\(Self.tag)\"", size: nil) == nil)
        #expect(try Self.linked("\"\(Self.tag)\"", size: "many") == nil)
        #expect(try Self.linked("\"\(Self.tag)\"", [("X-Xet-Hash", Self.tag)]) == nil)
        #expect(try Self.linked("\"\(Self.tag)\"", [("X-Xet-Hash", String(Self.tag.reversed()))]) != nil)
    }
}
