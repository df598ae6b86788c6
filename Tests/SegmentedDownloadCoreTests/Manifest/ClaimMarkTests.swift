import Testing

@testable import SegmentedDownloadCore

@Suite struct ClaimMarkTests {
    private static func claim(_ range: Range<Int64>, mark: UInt8 = 0) -> Claim {
        Claim(offset: range.lowerBound, length: range.upperBound - range.lowerBound, crc: CRC32(), mark: mark)
    }

    private static let header = Manifest.Header(
        id: 9, resource: RemoteResource(completeLength: 1000), completeLength: 1000, device: 1, inode: 2, bootID: "b",
        sources: ["http://a/", "http://b/"], digests: [])

    @Test("A claim's mark is read as it was written", arguments: [0, 1, 200, 255] as [UInt8])
    func codec(mark: UInt8) throws {
        let claim = Self.claim(10..<20, mark: mark)
        let bytes =
            ManifestCodec.encode(Self.header)
            + ManifestCodec.encode(.claim(claim), sequence: 0, of: Self.header.id)
        #expect(try ManifestCodec.decode(bytes).pending == [claim])
    }

    @Test("Adjacent claims of different sources are not joined")
    func joined() {
        let claims = [Self.claim(0..<10), Self.claim(10..<20), Self.claim(20..<30, mark: 2), Self.claim(30..<40)]
        #expect(claims.joined().map(\.range) == [0..<20, 20..<30, 30..<40])
        #expect(claims.marked == [MarkedRanges(mark: 2, ranges: [20..<30])])
    }

    @Test("A claim that overlaps withdrawn bytes is removed whole, and the durable ones are counted again")
    func withdrawn() {
        var claims = [Self.claim(0..<10), Self.claim(10..<20), Self.claim(20..<30)]
        #expect(claims.withdraw([5..<12], durableCount: 2) == 0)
        #expect(claims.map(\.range) == [20..<30])
    }

    @Test("Claims without a mark get an unused one")
    func markUnmarked() {
        var claims = [Self.claim(0..<10), Self.claim(10..<20, mark: 3), Self.claim(20..<30, mark: 201)]
        claims.markUnmarked()
        #expect(claims.map(\.mark) == [202, 3, 201])
    }

    @Test("The mark of another program's bytes is given to no others")
    func adoptedMark() {
        var claims = (201...254).map { Self.claim(Int64($0) * 10..<Int64($0) * 10 + 10, mark: $0) }
        claims.append(Self.claim(0..<10, mark: Claim.adoptedMark))
        claims += [Self.claim(10..<20), Self.claim(20..<30, mark: 1)]
        claims.markUnmarked()
        claims.retireMarks()
        #expect(claims.suffix(3).map(\.mark) == [Claim.adoptedMark, 254, 254])
    }

    @Test(
        "Marks of an earlier run become marks that no source of the next run has, one for each earlier source"
    )
    func retireMarks() {
        var claims = [
            Self.claim(0..<10), Self.claim(10..<20, mark: 3), Self.claim(20..<30, mark: 201),
            Self.claim(30..<40, mark: 1), Self.claim(40..<50, mark: 3),
        ]
        claims.retireMarks()
        #expect(claims.map(\.mark) == [0, 203, 201, 202, 203])
    }

    @Test("Only marks up to 200 are of sources: these are taken away")
    func retiredMarks() {
        var claims = [Self.claim(0..<10, mark: 200), Self.claim(10..<20, mark: 201), Self.claim(20..<30, mark: 255)]
        claims.retireMarks()
        #expect(claims.map(\.mark) == [202, 201, 255])
        var taken = (201...255).map { Self.claim(Int64($0)..<Int64($0) + 1, mark: $0) } + [Self.claim(0..<1, mark: 1)]
        taken.retireMarks()
        #expect(taken.last?.mark == 254)
    }

    @Test("A claim lies within one block, and has at least one byte")
    func block() {
        let block = BlockLayout.blockLength
        for (offset, length, isWithin) in [
            (0, block, true), (0, block + 1, false), (block - 1, 1, true), (block - 1, 2, false), (0, 0, false),
            (-1, 1, false), (5, -1, false), (.max - 1, 1, true), (.max, 1, false),
        ] as [(Int64, Int64, Bool)] {
            #expect(Claim.isWithinBlock(offset: offset, length: length) == isWithin, "\(length) bytes at \(offset)")
        }
    }
}
