import SegmentedDownloadCore
import Testing

@Suite("Dividing a file among tasks")
struct FileDivisionTests {
    private static let block: Int64 = 1 << 20

    @Test("Alignments are multiples of 1 MiB of at most 64 MiB, and not shorter than the file system's blocks")
    func alignment() {
        for (block, alignment) in [
            (0, 1), (512, 1), (1 << 20, 1), (1 << 20 | 1, 2), (4 << 20, 4), (Int64.max, 64),
        ] as [(Int64, Int64)] {
            #expect(FileDivision.alignment(blockLength: block) == alignment * Self.block)
        }
    }

    @Test("The ranges of the tasks cover the file once, and only the first tasks have some")
    func ranges() throws {
        for count in [1, 2, 3, 8, 100] {
            for length in [1, Self.block, Self.block + 1, 10 * Self.block - 1, 1000 * Self.block + 17] {
                let division = try #require(FileDivision(count: count, length: length, alignment: Self.block))
                var end: Int64 = 0
                for shard in division.shards {
                    let range = division.range(of: shard)
                    #expect(range.lowerBound == end && !range.isEmpty && range.lowerBound % Self.block == 0)
                    end = range.upperBound
                }
                #expect(end == length)
                let others = (1...count).compactMap { Shard(number: $0, of: count) }.dropFirst(division.shards.count)
                #expect(others.allSatisfy { division.range(of: $0).isEmpty })
            }
        }
    }

    @Test(
        "Ranges and pieces cover files of any length that can be divided, up to the longest",
        arguments: [
            1, FileDivision.lengthMax, FileDivision.lengthMax - 1, FileDivision.lengthMax / 3, (1 << 40) + 1,
        ] as [Int64])
    func extremeLengths(length: Int64) throws {
        for count in [1, 2, 3, 16, 1000] {
            for alignment in [1, 3, Self.block, Self.block + 1, FileDivision.alignmentMax] as [Int64] {
                let division = try #require(FileDivision(count: count, length: length, alignment: alignment))
                let shards = division.shards
                var end = try #require(shards.first.map { division.range(of: $0).lowerBound })
                #expect(end == 0)
                // Of many tasks, the first and the last ones.
                for shard in shards.count > 32 ? shards.prefix(16) + shards.suffix(16) : shards[...] {
                    let range = division.range(of: shard)
                    if shard.number <= 16 || shards.count <= 32 { #expect(range.lowerBound == end) }
                    end = range.lowerBound
                    for piece in division.pieces(of: shard) {
                        let part = division.range(of: piece)
                        #expect(part.lowerBound == end && !part.isEmpty)
                        end = part.upperBound
                    }
                    #expect(end == range.upperBound)
                }
                #expect(end == length)
            }
        }
    }

    @Test(
        "A range is computed without overflow for every length", arguments: [0, 1, Int64.max - 1, Int64.max] as [Int64])
    func rangesOfAnyLength(length: Int64) throws {
        for count in [1, 3, Shard.countMax] {
            for alignment in [1, 2, Self.block, Int64.max] {
                let last = try #require(Shard(number: count, of: count))
                #expect(last.range(in: length, alignedTo: alignment).upperBound == length)
            }
        }
    }

    @Test("There is no division of nothing, among no tasks, or with no alignment")
    func impossible() {
        #expect(FileDivision(count: 0, length: 1, alignment: 1) == nil)
        #expect(FileDivision(count: 1, length: 0, alignment: 1) == nil)
        #expect(FileDivision(count: 1, length: FileDivision.lengthMax + 1, alignment: 1) == nil)
        #expect(FileDivision(count: 1, length: .max, alignment: 1) == nil)
        #expect(FileDivision(count: 1, length: 1, alignment: 0) == nil)
        #expect(FileDivision(count: 1, length: 1, alignment: .max) == nil)
    }

    // MARK: Verdicts

    private static let bytes = (0..<100).map { UInt8($0 * 7 % 251) }

    private static func resource(_ tag: String?, date: Int64? = nil) -> RemoteResource {
        RemoteResource(
            completeLength: Int64(Self.bytes.count),
            validator: Validator(
                entityTag: tag.flatMap { EntityTag(fieldValue: $0) },
                lastModified: date.flatMap { HTTPDate(secondsSinceEpoch: $0) }))
    }

    private static func records(
        _ division: FileDivision, _ resource: RemoteResource
    ) -> [Shard: FinishedRecord] {
        division.shards.reduce(into: [:]) { records, shard in
            let range = division.range(of: shard)
            records[shard] = FinishedRecord(
                resource: resource, length: Int64(range.count),
                crc: CRC32(of: Self.bytes[Int(range.lowerBound)..<Int(range.upperBound)]), modified: 0)
        }
    }

    @Test("A date that proves nothing does not make records of one version, unless there is a digest")
    func weakDate() throws {
        let division = try #require(FileDivision(count: 2, length: 100, alignment: 1))
        var resource = Self.resource(nil, date: 1_700_000_000)
        let records = Self.records(division, resource)
        #expect(division.verdict(on: records, of: resource, hasDigest: false) == .complete(CRC32(of: Self.bytes)))
        resource.validator = Validator(
            entityTag: nil, lastModified: resource.validator.lastModified, isDateWeak: true)
        #expect(division.verdict(on: records, of: resource, hasDigest: false) != .complete(CRC32(of: Self.bytes)))
        #expect(division.verdict(on: records, of: resource, hasDigest: true) == .complete(CRC32(of: Self.bytes)))
    }

    @Test("The CRC-32 of the file is combined from the records of all tasks, and a missing record is waited for")
    func complete() throws {
        let division = try #require(FileDivision(count: 7, length: 100, alignment: 8))
        let resource = Self.resource("\"a\"")
        var records = Self.records(division, resource)
        #expect(division.verdict(on: records, of: resource, hasDigest: false) == .complete(CRC32(of: Self.bytes)))
        for shard in division.shards {
            var others = records
            others[shard] = nil
            #expect(division.verdict(on: others, of: resource, hasDigest: true) == .waiting(for: [shard]))
        }
        let last = division.shards[division.shards.count - 1]
        records[last]?.length -= 1
        #expect(division.verdict(on: records, of: resource, hasDigest: false) == .unsuitable(last))
    }

    @Test("Ranges of another version do not count, even with a digest")
    func changed() throws {
        let division = try #require(FileDivision(count: 3, length: 100, alignment: 8))
        var records = Self.records(division, Self.resource("\"a\""))
        let shard = division.shards[1]
        records[shard]?.resource = Self.resource("\"b\"")
        for hasDigest in [false, true] {
            #expect(
                division.verdict(on: records, of: Self.resource("\"a\""), hasDigest: hasDigest)
                    == .changed(shard, Self.resource("\"b\"").validator))
        }
    }

    @Test("Without a validator that proves the version only a digest decides")
    func unproven() throws {
        let division = try #require(FileDivision(count: 3, length: 100, alignment: 8))
        for (resource, isProven) in [
            (Self.resource(nil), false), (Self.resource("W/\"a\""), false), (Self.resource("W/\"a\"", date: 1), true),
            (Self.resource(nil, date: 1), true),
        ] {
            let records = Self.records(division, resource)
            let complete = AssemblyVerdict.complete(CRC32(of: Self.bytes))
            #expect(division.verdict(on: records, of: resource, hasDigest: true) == complete)
            #expect((division.verdict(on: records, of: resource, hasDigest: false) == complete) == isProven)
        }
    }
}
