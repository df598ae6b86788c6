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

    @Test("Digests come before comparisons, and comparisons before validators")
    func order() {
        let tagged = Self.resource(tag: "\"a\"")
        for (hasDigests, evidence, verification) in [
            (true, .comparison, .digest), (true, .validator, .digest), (true, .none, .digest),
            (false, .comparison, .comparison), (false, .validator, .etag), (false, .none, .none),
        ] as [(Bool, Evidence, DownloadResult.Verification)] {
            #expect(
                DownloadResult.Verification(of: tagged, hasDigests: hasDigests, evidence: evidence) == verification)
        }
    }

    @Test("Without digests and comparisons only a validator that proves something counts, of a body with an end")
    func validators() {
        for (resource, verification) in [
            (nil, .none), (Self.resource(), .none), (Self.resource(tag: "W/\"a\""), .none),
            (Self.resource(tag: "\"a\"", date: "Tue, 14 Nov 2023 22:13:20 GMT"), .etag),
            (Self.resource(date: "Tue, 14 Nov 2023 22:13:20 GMT"), .lastModified),
            (Self.resource(tag: "\"a\"", endsWithConnection: true), .none),
        ] as [(RemoteResource?, DownloadResult.Verification)] {
            #expect(
                DownloadResult.Verification(of: resource, hasDigests: false, evidence: .validator) == verification)
        }
    }
}
