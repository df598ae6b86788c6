import SegmentedDownloadCore
import Testing

/// The one gate to success.
@Suite("A verified file")
struct VerifiedFileTests {
    private typealias Content = VerifiedFile.Content

    private static func digest(_ algorithm: ExpectedDigest.Algorithm, _ digit: Character) throws -> ExpectedDigest {
        try #require(ExpectedDigest(algorithm, hex: String(repeating: digit, count: algorithm == .md5 ? 32 : 64)))
    }

    private static func code(
        _ content: Content, _ requirements: VerifiedFile.Requirements = .init(), _ proof: VerifiedFile.Proof = .kept
    ) -> DownloadError.Code? {
        do throws(DownloadError) {
            _ = try VerifiedFile.judged(content, for: requirements, by: proof)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("Each digest that is required must be the file's, and one that was not computed is no proof")
    func digests() throws {
        let (sha256, md5) = (try Self.digest(.sha256, "a"), try Self.digest(.md5, "b"))
        let right = Content(length: 1, hexes: [.sha256: sha256.hex, .md5: md5.hex])
        for proof in [.kept, .recorded, .digests, .received(RemoteResource(completeLength: 1), .validator)]
            as [VerifiedFile.Proof]
        {
            #expect(Self.code(right, .init(digests: [sha256, md5]), proof) == nil)
            let wrong = Content(length: 1, hexes: [.sha256: sha256.hex, .md5: String(repeating: "c", count: 32)])
            #expect(Self.code(wrong, .init(digests: [sha256, md5]), proof) == .integrity)
            #expect(Self.code(wrong, .init(digests: [sha256]), proof) == nil)
            let lacking = Content(length: 1, hexes: [.sha256: sha256.hex])
            #expect(Self.code(lacking, .init(digests: [sha256, md5]), proof) == .internal)
        }
        let both = [md5, try Self.digest(.md5, "c")]
        #expect(Self.code(right, .init(digests: both)) == .integrity, "a file cannot have two")
    }

    @Test("A digest that a server states is named with its field, and the user can give the right one")
    func stated() throws {
        let (given, right) = (try Self.digest(.md5, "b"), try Self.digest(.md5, "c"))
        let content = Content(length: 1, hexes: [.md5: right.hex])
        let stated = given.stated(in: "Content-MD5")
        // Both are the same digest.
        #expect(stated == given && Set([stated, given]).count == 1)
        let text = "the file's md5 is \(right.hex), not \(given.hex)"
        let cases: [(ExpectedDigest, String, Remedy)] = [
            (given, text, .startOver),
            (stated, text + ", which the server states (Content-MD5)", .giveOwnDigestOrStartOver),
        ]
        for (digest, text, remedy) in cases {
            #expect(throws: DownloadError(.integrity, text, remedy: remedy)) {
                try VerifiedFile.judged(content, for: .init(digests: [digest]), by: .kept)
            }
        }
    }

    @Test("Digests of pieces that were given must have been compared, and agree")
    func pieces() {
        let cases: [(Content.Pieces?, DownloadError.Code?)] = [
            (.agree, nil), (.differ(at: 0), .integrity), (nil, .internal),
        ]
        for (pieces, code) in cases {
            #expect(Self.code(.init(length: 1, pieces: pieces), .init(hasPieces: true)) == code)
            #expect(Self.code(.init(length: 1, pieces: pieces), .init()) == nil)
        }
    }

    @Test("A part is of one version if all that is stated of the whole file is, or if it has a digest of its own")
    func parts() throws {
        let stated = [try Self.digest(.sha256, "a"), try Self.digest(.md5, "b"), try Self.digest(.sha256, "c")]
        let own = try Self.digest(.md5, "d")
        let content = Content(length: 1, hexes: [.md5: own.hex])
        for (count, wholeLength, code) in [(2, 9, nil), (3, 9, .integrity), (3, 1, nil)]
            as [(Int, Int64, DownloadError.Code?)]
        {
            var resource = RemoteResource(completeLength: 1, wholeLength: wholeLength)
            resource.state(Array(stated[..<count]))
            #expect(resource.isPart == (wholeLength > 1))
            #expect(resource.ownDigests == (resource.isPart ? [] : resource.digests))
            #expect(Self.code(content, .init(), .received(resource, .validator)) == code)
            #expect(Self.code(content, .init(digests: [own]), .received(resource, .validator)) == nil)
        }
    }

    @Test("The length is the one that was given, and the server's")
    func lengths() {
        #expect(Self.code(.init(length: 1), .init(length: 2)) == .integrity)
        #expect(Self.code(.init(length: 2), .init(length: 2)) == nil)
        for proof in [{ .confirmed($0) }, { .received($0, .comparison) }] as [(RemoteResource) -> VerifiedFile.Proof] {
            #expect(Self.code(.init(length: 1), .init(), proof(RemoteResource(completeLength: 2))) == .integrity)
            #expect(Self.code(.init(length: 2), .init(), proof(RemoteResource(completeLength: 2))) == nil)
            #expect(Self.code(.init(length: 2), .init(), proof(RemoteResource(completeLength: nil))) == nil)
        }
    }

    @Test("Digests prove nothing if none was required")
    func proof() {
        #expect(Self.code(.init(length: 1), .init(), .digests) == .internal)
    }
}
