import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// The digest that a response gives for its own bytes.
@Suite("A response's own digest")
struct ContentCheckTests {
    private static let bytes = Array("0123456789".utf8)

    private static func check(_ bytes: [UInt8], of announced: String, length: Int64? = 10) throws -> ContentCheck {
        let digest = try #require(ExpectedDigest(.md5, hex: announced))
        let resource = RemoteResource(completeLength: length)
        var check = ContentCheck(digest, of: .whole(resource))
        bytes.prefix(4).withUnsafeBytes { check.update($0) }
        bytes.dropFirst(4).withUnsafeBytes { check.update($0) }
        return check
    }

    private static var right: String {
        var digest = RunningDigest(.md5)
        Self.bytes.withUnsafeBytes { digest.update($0) }
        return digest.hex
    }

    private static let wrong = String(repeating: "0", count: 32)

    @Test("Bytes that agree are no failure, and others are one as soon as all of them came")
    func complete() throws {
        #expect(try Self.check(Self.bytes, of: Self.right).failure == nil)
        #expect(try Self.check(Self.bytes, of: Self.wrong).failure?.code == .integrity)
    }

    @Test("Of a response that was cut nothing can be said, and of one that ended everything")
    func incomplete() throws {
        for length in [10, nil] as [Int64?] {
            var check = try Self.check(Array(Self.bytes.dropLast()), of: Self.right, length: length)
            #expect(check.failure == nil)
            check.hasEnded = true
            #expect(check.failure?.code == .integrity)
        }
        #expect(try Self.check(Self.bytes, of: Self.wrong, length: nil).failure == nil)
    }

    @Test("A body whose digest follows is compared with it once it has arrived, if it is of a computed algorithm")
    func trailing() throws {
        let digest = { (algorithm: ExpectedDigest.Algorithm, bytes: [UInt8]) throws -> ExpectedDigest in
            var running = RunningDigest(algorithm)
            bytes.withUnsafeBytes { running.update($0) }
            return try #require(ExpectedDigest(algorithm, hex: running.hex))
        }
        var check = ContentCheck(nil, awaitsTrailers: true, of: .whole(RemoteResource(completeLength: 10)))
        Self.bytes.withUnsafeBytes { check.update($0) }
        check.hasEnded = true
        #expect(check.failure == nil, "nothing was stated")
        let isOtherAdded = check.add(try digest(.md5, [1]))
        #expect(!isOtherAdded && check.failure == nil)
        for algorithm in [ExpectedDigest.Algorithm.sha256, .sha512] {
            let isRightAdded = check.add(try digest(algorithm, Self.bytes))
            #expect(isRightAdded && check.failure == nil)
        }
        let isWrongAdded = check.add(try digest(.sha512, [1]))
        #expect(isWrongAdded && check.failure?.code == .integrity)
        // The digest in the head is compared, too.
        var both = try Self.check(Self.bytes, of: Self.right)
        let isAdded = both.add(try digest(.md5, [1]))
        #expect(isAdded && both.failure?.code == .integrity)
    }

    @Test("The length of a partial response is that of its range")
    func range() throws {
        let digest = try #require(ExpectedDigest(.md5, hex: Self.wrong))
        var check = ContentCheck(digest, of: .partial(ByteRange(100..<110), RemoteResource(completeLength: 1000)))
        Self.bytes.dropLast().withUnsafeBytes { check.update($0) }
        #expect(check.failure == nil)
        Self.bytes.suffix(1).withUnsafeBytes { check.update($0) }
        #expect(check.failure?.code == .integrity)
    }
}
