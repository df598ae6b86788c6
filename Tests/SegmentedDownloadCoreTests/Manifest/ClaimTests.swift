import SegmentedDownloadCore
import Testing

@Suite("Claims")
struct ClaimTests {
    private static let content = (0..<400).map { UInt8(truncatingIfNeeded: $0 &* 37 ^ ($0 >> 3)) }

    private static func claim(_ offset: Int, _ length: Int) -> Claim {
        Claim(offset: Int64(offset), length: Int64(length), crc: CRC32(of: Self.content[offset..<(offset + length)]))
    }

    private static func claims(_ seed: UInt64) -> [Claim] {
        var generator = SplitMix64(seed: seed)
        return (0..<Int.random(in: 0...8, using: &generator)).map { _ in
            let offset = Int.random(in: 0..<390, using: &generator)
            return Self.claim(offset, Int.random(in: 1...min(60, 400 - offset), using: &generator))
        }
    }

    @Test("Overlapping claims are all ignored, all others count", arguments: UInt64(0)..<300)
    func settled(seed: UInt64) {
        let claims = Self.claims(seed)
        let alone = claims.enumerated().filter { index, claim in
            !claims.enumerated().contains { $0.offset != index && $0.element.range.overlaps(claim.range) }
        }
        #expect(claims.settled() == alone.map(\.element).sorted { $0.offset < $1.offset }, "replay with \(seed)")
    }

    @Test("Every byte without a claim is missing", arguments: UInt64(0)..<300)
    func missing(seed: UInt64) {
        let claims = Self.claims(seed).settled()
        let bytes = (Int64(0)..<400).filter { byte in !claims.contains { $0.range.contains(byte) } }
        let missing = claims.missing(of: 400)
        #expect(missing.flatMap { Array($0) } == bytes, "replay with \(seed)")
        for (left, right) in zip(missing, missing.dropFirst()) { #expect(left.upperBound < right.lowerBound) }
    }

    @Test("Joining keeps the bytes and combines their checksums", arguments: UInt64(0)..<300)
    func joined(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var cuts = Set((0..<12).map { _ in Int.random(in: 1..<400, using: &generator) }).sorted()
        cuts = [0] + cuts + [400]
        let claims = zip(cuts, cuts.dropFirst()).map { Self.claim($0, $1 - $0) }
        #expect(claims.joined() == [Self.claim(0, 400)])
        #expect(claims.combinedCRC(of: 400) == CRC32(of: Self.content))
        let kept = claims.filter { _ in Bool.random(using: &generator) }
        for claim in kept.joined() {
            #expect(claim == Self.claim(Int(claim.offset), Int(claim.length)), "replay with \(seed)")
        }
        #expect(kept.joined().missing(of: 400) == kept.missing(of: 400))
        if kept.count < claims.count { #expect(kept.combinedCRC(of: 400) == nil) }
    }

    @Test("Claims that reach past the end have no checksum of the whole")
    func longer() {
        #expect([Self.claim(0, 400)].combinedCRC(of: 300) == nil)
        #expect([Claim]().combinedCRC(of: 0) == CRC32())
    }

    @Test("Claims are not joined across a block's end")
    func blocks() {
        let end = BlockLayout.blockLength
        let claims = [
            Claim(offset: end - 5, length: 5, crc: CRC32(value: 1)),
            Claim(offset: end, length: 5, crc: CRC32(value: 2)),
        ]
        #expect(claims.joined() == claims)
    }

    @Test("Forgetting withdraws every claim that ends after the offset, durable or not", arguments: UInt64(0)..<300)
    func forget(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let claims = Self.claims(seed)
        let offset = Int64.random(in: 0...400, using: &generator)
        let durable = Int.random(in: 0...claims.count, using: &generator)
        var left = claims
        let count = left.forget(from: offset, durableCount: durable)
        #expect(left == claims.filter { $0.range.upperBound <= offset })
        #expect(
            Array(left[..<count]) == claims[..<durable].filter { $0.range.upperBound <= offset }, "replay with \(seed)")
    }
}
