import SegmentedDownloadCore
import Testing

/// How tasks divide the range of another one.
@Suite("Pieces of a task's range")
struct RangePieceTests {
    private static let validator = Validator(entityTag: EntityTag(fieldValue: "\"1\""), lastModified: nil)
    private static let other = Validator(entityTag: EntityTag(fieldValue: "\"2\""), lastModified: nil)

    @Test("The pieces of all ranges cover the file once, in order, between multiples of the alignment")
    func cover() throws {
        var generator = SplitMix64(seed: 1)
        for _ in 0..<500 {
            let division = try #require(
                FileDivision(
                    count: Int.random(in: 1...9, using: &generator),
                    length: Int64.random(in: 1...9999, using: &generator),
                    alignment: Int64.random(in: 1...99, using: &generator)))
            var reached: Int64 = 0
            for shard in division.shards {
                let pieces = division.pieces(of: shard)
                #expect((1...FileDivision.piecesMax).contains(pieces.count))
                for piece in pieces {
                    let range = division.range(of: piece)
                    #expect(range.lowerBound == reached && !range.isEmpty)
                    #expect(range.lowerBound.isMultiple(of: division.alignment))
                    reached = range.upperBound
                }
            }
            #expect(reached == division.length)
        }
    }

    @Test("A piece's name is that of its task and its number")
    func names() throws {
        let shard = try #require(Shard(number: 3, of: 8))
        #expect(RangePiece(of: shard, index: 2).fileName == "3-of-8.piece-2")
        #expect(RangePiece("3-of-8", "piece-2") == RangePiece(of: shard, index: 2))
        for (task, piece) in [("3-of-8", "piece-16"), ("3-of-8", "segdl"), ("plan", "piece-2"), ("3-of-8", "piece--1")]
        {
            #expect(RangePiece(task[...], piece[...]) == nil)
        }
    }

    @Test("A range is complete if every piece has a record of its length and of the file's version")
    func combining() throws {
        let division = try #require(FileDivision(count: 2, length: 5, alignment: 1))
        let shard = try #require(Shard(number: 1, of: 2))
        let bytes: [UInt8] = [1, 2, 3]
        let resource = RemoteResource(completeLength: 5, validator: Self.validator)
        let record = { (bytes: ArraySlice<UInt8>, validator: Validator) in
            FinishedRecord(
                resource: RemoteResource(completeLength: Int64(bytes.count), validator: validator),
                length: Int64(bytes.count), crc: CRC32(of: bytes), modified: 1)
        }
        let pieces = division.pieces(of: shard)
        #expect(pieces.count == 3)
        var records: [RangePiece: [FinishedRecord]] = [:]
        for (index, piece) in pieces.enumerated() {
            #expect(division.record(of: shard, combining: records, resource, hasDigest: true) == nil)
            records[piece] = [
                record(bytes[...], Self.validator), record(bytes[index...index], Self.other),
                record(bytes[index...index], Self.validator),
            ]
        }
        let combined = try #require(division.record(of: shard, combining: records, resource, hasDigest: false))
        #expect(combined.length == 3 && combined.crc == CRC32(of: bytes))
        #expect(division.objection(to: combined, of: shard, resource, hasDigest: false) == nil)
        records[pieces[1]] = [record(bytes[1...1], Self.other), record(bytes[1...1], .none)]
        #expect(division.record(of: shard, combining: records, resource, hasDigest: true) == nil)
    }

    @Test("Without a validator, records of pieces count only if the file has a digest")
    func unproven() throws {
        let division = try #require(FileDivision(count: 1, length: 1, alignment: 1))
        let resource = RemoteResource(completeLength: 1)
        let record = FinishedRecord(resource: resource, length: 1, crc: CRC32(of: [1]), modified: 1)
        let records = [RangePiece(of: .only, index: 0): [record]]
        #expect(division.record(of: .only, combining: records, resource, hasDigest: true)?.crc == record.crc)
        #expect(division.record(of: .only, combining: records, resource, hasDigest: false) == nil)
    }

    @Test("What changes is not idle")
    func watch() {
        var watch = ProgressWatch<String, Int>()
        #expect(watch.idleTime(of: "a", 1, now: .seconds(1)) == .zero)
        #expect(watch.idleTime(of: "a", 1, now: .seconds(4)) == .seconds(3))
        #expect(watch.idleTime(of: "b", 1, now: .seconds(4)) == .zero)
        #expect(watch.idleTime(of: "a", 2, now: .seconds(5)) == .zero)
        #expect(watch.idleTime(of: "a", 2, now: .seconds(6)) == .seconds(1))
    }
}
