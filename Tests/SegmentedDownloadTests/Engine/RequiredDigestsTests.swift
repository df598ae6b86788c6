import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Which digests a file must have.
@Suite("The digests that a file must have")
struct RequiredDigestsTests {
    private static func digest(_ algorithm: ExpectedDigest.Algorithm, _ count: Int, _ digit: String = "0") throws
        -> ExpectedDigest
    {
        try #require(ExpectedDigest(algorithm, hex: String(repeating: digit, count: count)))
    }

    private static func header(_ digests: [ExpectedDigest], source: String = "http://host/file") -> Manifest.Header {
        Manifest.Header(
            id: 7, resource: WatchedPart.resource(100), completeLength: 100, device: 1, inode: 2, bootID: "",
            sources: [source], digests: digests.map(\.description))
    }

    @Test("Every digest that a response states counts, until the file starts over")
    func stated() throws {
        let (md5, sha256, other) = (
            try Self.digest(.md5, 32), try Self.digest(.sha256, 64), try Self.digest(.sha256, 64, "1")
        )
        var digests = RequiredDigests([])
        #expect(digests.all.isEmpty)
        digests.state([sha256])
        digests.state([])
        digests.state([md5, sha256])
        #expect(digests.all == [sha256, md5] && digests.recorded.isEmpty && digests.stated == [sha256, md5])
        // The file cannot have both, so it cannot be complete.
        digests.state([other])
        #expect(digests.all == [sha256, md5, other])
        digests.beginAnew()
        #expect(digests.all.isEmpty && digests.stated.isEmpty)
    }

    @Test("A digest that a server stated identifies no file that the user wants")
    func statedBefore() throws {
        let md5 = try Self.digest(.md5, 32)
        let source = try SourceURL("http://host/file")
        var header = Self.header([])
        header.resource.state([md5])
        var digests = RequiredDigests([])
        let isInherited = digests.inherit(header, of: source, isSameFile: false)
        #expect(isInherited && digests.all.isEmpty && !digests.pins(header))
    }

    @Test("The server's digest is ignored beside one of the user's that is at least as strong")
    func stronger() throws {
        let (md5, sha256) = (try Self.digest(.md5, 32), try Self.digest(.sha256, 64))
        let other = try Self.digest(.sha256, 64, "1")
        for (requested, announced, all) in [
            ([sha256], md5, [sha256]), ([sha256], other, [sha256]), ([md5], sha256, [md5, sha256]),
        ] {
            var digests = RequiredDigests(requested)
            digests.state([announced])
            #expect(digests.all == all)
        }
        var given = RequiredDigests([sha256])
        given.state([other, md5])
        #expect(given.all == [sha256])
    }

    @Test("A manifest of the same file adds its digests, except for algorithms that the request gives itself")
    func inherited() throws {
        let (md5, sha256) = (try Self.digest(.md5, 32), try Self.digest(.sha256, 64))
        let source = try SourceURL("http://host/file")
        for (recordedSource, isSameFile, expected) in [
            ("http://host/file", false, [sha256, md5]), ("*http://host/file", false, [sha256, md5]),
            ("http://other/file", false, [sha256]), ("http://other/file", true, [sha256, md5]),
        ] {
            var digests = RequiredDigests([sha256])
            let isInherited = digests.inherit(
                Self.header([md5, try Self.digest(.sha256, 64, "1")], source: recordedSource), of: source,
                isSameFile: isSameFile)
            #expect(digests.recorded == expected && digests.all == expected && isInherited == (expected.count == 2))
        }
    }

    @Test("A manifest is pinned if it has digests and all of them still apply")
    func pinned() throws {
        let (md5, sha256) = (try Self.digest(.md5, 32), try Self.digest(.sha256, 64))
        let (other, sha1) = (try Self.digest(.md5, 32, "1"), try Self.digest(.sha1, 40))
        let digests = RequiredDigests([md5, sha256])
        for (recorded, isPinned) in [
            ([], false), ([md5], true), ([md5, sha256], true), ([other], false), ([md5, sha1], false),
        ] as [([ExpectedDigest], Bool)] {
            #expect(digests.pins(Self.header(recorded)) == isPinned)
        }
    }
}
