import Foundation
import Testing

@testable import SegmentedDownloadCore

@Suite("Control files of other programs")
struct ControlFileTests {
    /// A control file of the corpus, some of which the programs wrote themselves.
    private static func bytes(_ name: String) throws -> [UInt8] {
        let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(components: "..", "..", "..", "Fixtures", "Corpus", "control-file")
        return [UInt8](try Data(contentsOf: directory.appending(component: name)))
    }

    private static let piece: Int64 = 1 << 20
    private static let block: Int64 = 16 << 10

    @Test("aria2: complete pieces, and the blocks of the four pieces that it was fetching")
    func aria2() throws {
        let control = try #require(ControlFile(.aria2, try Self.bytes("aria2")))
        #expect(control.completeLength == 64 * Self.piece)
        let present = control.present(in: 64 * Self.piece)
        // Of every quarter six pieces and the first block of the seventh, or only that where it was not begun.
        #expect(present.map(\.lowerBound) == [0, 16, 32, 48].map { $0 * Self.piece })
        #expect(present.map { ($0.upperBound - $0.lowerBound) / Self.piece } == [6, 6, 6, 6])
        #expect(
            present.map { ($0.upperBound - $0.lowerBound) % Self.piece } == [Self.block, Self.block, Self.block, 0])
    }

    @Test("aria2: a short last piece, and version 0 in the other byte order")
    func aria2Versions() throws {
        let length = 3 * Self.piece + 5
        let small = try #require(ControlFile(.aria2, try Self.bytes("aria2-small")))
        #expect(small.completeLength == length)
        let begun = Self.piece..<Self.piece + 4 * Self.block
        #expect(small.present(in: length) == [0..<begun.upperBound, 2 * Self.piece..<3 * Self.piece])
        let old = try #require(ControlFile(.aria2, try Self.bytes("aria2-v0")))
        #expect(old.present(in: length) == [0..<Self.piece, 2 * Self.piece..<3 * Self.piece])
    }

    @Test(
        "A damaged file, a torrent's and another program's are not read",
        arguments: ["aria2-cut", "aria2-torrent", "axel", "empty"])
    func unreadable(name: String) throws {
        #expect(ControlFile(.aria2, try Self.bytes(name)) == nil)
    }

    @Test("Every byte of aria2's header counts")
    func header() throws {
        let bytes = try Self.bytes("aria2-small")
        for index in 0..<34 where !(22..<30).contains(index) {
            var other = bytes
            other[index] ^= 0x80
            let read = ControlFile(.aria2, other)
            #expect(read == nil || read != ControlFile(.aria2, bytes), "byte \(index)")
        }
    }

    @Test("axel: what each of four connections has left")
    func axel() throws {
        let control = try #require(ControlFile(.axel, try Self.bytes("axel")))
        let quarter = 16 * Self.piece
        // The end may be that of the last byte or the one after it, so one byte more is missing.
        #expect(
            control.missing
                == (Int64(0)..<4).map { $0 * quarter + 6 * Self.piece..<($0 + 1) * quarter + 1 })
        #expect(control.completeLength == nil)
        #expect(control.present(in: 4 * quarter).count == 4)
    }

    @Test("axel: the number of connections with 4 bytes, and connections that may lack their last byte")
    func axelVersions() throws {
        #expect(ControlFile(.axel, try Self.bytes("axel-4-bytes"))?.missing == [50..<201, 250..<301])
        #expect(ControlFile(.axel, try Self.bytes("axel-done"))?.missing == [200..<201, 300..<301])
        #expect(ControlFile(.axel, try Self.bytes("aria2")) == nil)
    }
}
