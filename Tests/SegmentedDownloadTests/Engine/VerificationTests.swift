import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// What a complete file was verified against.
@Suite("The verification of a file")
struct VerificationTests {
    private static func resource(
        tag: String? = nil, date: String? = nil, endsWithConnection: Bool = false
    ) -> RemoteResource {
        RemoteResource(
            completeLength: 100,
            validator: Validator(
                entityTag: tag.flatMap { EntityTag(fieldValue: $0) },
                lastModified: date.flatMap { HTTPDate(fieldValue: $0) }),
            endsWithConnection: endsWithConnection)
    }

    private static func verification(
        _ proof: VerifiedFile.Proof, _ requirements: VerifiedFile.Requirements = .init()
    ) throws -> DownloadResult.Verification {
        let content = VerifiedFile.Content(length: 100, crc: CRC32(), pieces: .agree)
        return DownloadResult.Verification(of: try .judged(content, for: requirements, by: proof))
    }

    @Test("Digests come before comparisons, and comparisons before validators")
    func order() throws {
        let tagged = Self.resource(tag: "\"a\"")
        let digests = [try #require(ExpectedDigest(.crc32, hex: CRC32().hex))]
        for (evidence, verification) in [(.comparison, .comparison), (.validator, .etag), (.none, .none)]
            as [(Evidence, DownloadResult.Verification)]
        {
            #expect(try Self.verification(.received(tagged, evidence)) == verification)
            #expect(try Self.verification(.received(tagged, evidence), .init(digests: digests)) == .digest)
            #expect(try Self.verification(.received(tagged, evidence), .init(hasPieces: true)) == .digest)
        }
        #expect(try Self.verification(.confirmed(tagged)) == .etag)
        #expect(try Self.verification(.digests, .init(digests: digests)) == .digest)
        #expect(try Self.verification(.recorded) == .none && Self.verification(.kept) == .none)
    }

    @Test("Without digests and comparisons only a validator that proves something counts, of a body with an end")
    func validators() throws {
        for (resource, verification) in [
            (Self.resource(), .none), (Self.resource(tag: "W/\"a\""), .none),
            (Self.resource(tag: "\"a\"", date: "Tue, 14 Nov 2023 22:13:20 GMT"), .etag),
            (Self.resource(date: "Tue, 14 Nov 2023 22:13:20 GMT"), .lastModified),
            (Self.resource(tag: "\"a\"", endsWithConnection: true), .none),
        ] as [(RemoteResource, DownloadResult.Verification)] {
            #expect(try Self.verification(.received(resource, .validator)) == verification)
        }
    }
}
