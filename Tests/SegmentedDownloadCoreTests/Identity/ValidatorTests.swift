import SegmentedDownloadCore
import Testing

@Suite("Validator")
struct ValidatorTests {
    private static let strong = Self.validator("\"abc\"", nil)
    private static let weak = Self.validator("W/\"abc\"", nil)
    private static let dated = Self.validator(nil, 1_700_000_000)
    private static let strongDated = Self.validator("\"abc\"", 1_700_000_000)
    private static let weakDated = Self.validator("W/\"abc\"", 1_700_000_000)

    private static func validator(_ tag: String?, _ seconds: Int64?) -> Validator {
        Validator(
            entityTag: tag.flatMap { EntityTag(fieldValue: $0) },
            lastModified: seconds.flatMap { HTTPDate(secondsSinceEpoch: $0) }
        )
    }

    @Test("An equal strong tag proves an equal file, unless both responses have dates that differ")
    func strongEqual() {
        #expect(Self.strong.compare(with: Self.strong) == .same(.etag))
        #expect(Self.strong.compare(with: Self.strongDated) == .same(.etag))
        #expect(Self.strongDated.compare(with: Self.strong) == .same(.etag))
        #expect(Self.strongDated.compare(with: Self.strongDated) == .same(.etag))
        // Some servers make tags from the length alone.
        #expect(Self.strongDated.compare(with: Self.validator("\"abc\"", 1)) == .unproven)
        #expect(
            Validator(tagFields: ["\"abc\""], dateFields: ["yesterday"]).compare(with: Self.strongDated) == .unproven)
    }

    @Test("A 304 may omit fields, and those that it has must be the recorded ones")
    func unmodified() {
        for current in [Validator.none, Self.strong, Self.dated, Self.strongDated] {
            #expect(Self.strongDated.difference(fromUnmodified: current) == nil)
        }
        for current in [
            Self.weak, Self.validator("\"abd\"", nil), Self.validator("\"abc\"", 1), Self.validator(nil, 1),
        ] {
            #expect(Self.strongDated.difference(fromUnmodified: current) != nil)
        }
        #expect(Self.strong.difference(fromUnmodified: Self.dated) == nil)
    }

    @Test(
        "A recorded strong tag that is now different, weak or missing is a change",
        arguments: [
            validator("\"abd\"", 1_700_000_000), validator("\"ABC\"", 1_700_000_000), validator("\"\"", 1_700_000_000),
            weakDated, dated, .none,
        ]
    )
    func strongChanged(current: Validator) {
        #expect(Self.strongDated.compare(with: current) == .changed)
        #expect(Self.strong.compare(with: current) == .changed)
    }

    @Test("A recorded weak tag that is now different, strong or missing is a change")
    func weakChanged() {
        for recorded in [Self.weak, Self.weakDated] {
            #expect(recorded.compare(with: Self.validator("W/\"abd\"", 1_700_000_000)) == .changed)
            #expect(recorded.compare(with: Self.strongDated) == .changed)
            #expect(recorded.compare(with: Self.dated) == .changed)
            #expect(recorded.compare(with: .none) == .changed)
        }
    }

    @Test("An equal weak tag proves nothing, and the date decides")
    func weakEqual() {
        #expect(Self.weak.compare(with: Self.weak) == .unproven)
        #expect(Self.weak.compare(with: Self.weakDated) == .unproven)
        #expect(Self.weakDated.compare(with: Self.weakDated) == .same(.lastModified))
        #expect(Self.weakDated.compare(with: Self.validator("W/\"abc\"", 1)) == .changed)
        #expect(Self.weakDated.compare(with: Self.weak) == .changed)
    }

    @Test("Without a tag the date decides, and a missing date is a change")
    func dates() {
        #expect(Self.dated.compare(with: Self.dated) == .same(.lastModified))
        #expect(Self.dated.compare(with: Self.strongDated) == .same(.lastModified))
        #expect(Self.dated.compare(with: Self.validator(nil, 1_700_000_001)) == .changed)
        #expect(Self.dated.compare(with: Self.strong) == .changed)
        #expect(Self.dated.compare(with: .none) == .changed)
    }

    @Test("An equal date proves nothing if the recorded response was sent within two seconds of it")
    func weakDate() {
        let date = "Tue, 14 Nov 2023 22:13:20 GMT"
        for (sent, received, isWeak) in [
            (0, nil, true), (1, nil, true), (2, nil, false), (-1, nil, true), (-86_400, nil, true), (9999, nil, false),
            // The sender's clock takes precedence over our own.
            (2, 0, false), (1, 60, true), (nil, 59, true), (nil, 60, false), (nil, -60, true), (nil, nil, false),
        ] as [(Int64?, Int64?, Bool)] {
            let moment = { (seconds: Int64) in HTTPDate(secondsSinceEpoch: 1_700_000_000 + seconds) }
            let recorded = Validator(
                tagFields: [], dateFields: [date], sent: sent.flatMap(moment), received: received.flatMap(moment))
            #expect(recorded.isDateWeak == isWeak, "\(String(describing: (sent, received)))")
            #expect(recorded.compare(with: Self.dated) == (isWeak ? .unproven : .same(.lastModified)))
            #expect(recorded.compare(with: recorded) == (isWeak ? .unproven : .same(.lastModified)))
            #expect(recorded.compare(with: Self.validator(nil, 1_700_000_001)) == .changed)
            #expect(recorded.compare(with: .none) == .changed)
            // What a later response proves depends on what was recorded.
            #expect(Self.dated.compare(with: recorded) == .same(.lastModified))
            #expect(RemoteResource(completeLength: 1, validator: recorded).isProvable == !isWeak)
            #expect(Self.dated.combined(with: recorded).isDateWeak == isWeak)
            #expect(!recorded.combined(with: Self.dated).isDateWeak)
            #expect(Self.weakDated.combined(with: Self.weak).isDateWeak)
        }
        let tagged = Validator(
            tagFields: ["\"abc\""], dateFields: [date], sent: HTTPDate(secondsSinceEpoch: 1_700_000_000))
        #expect(tagged.compare(with: Self.strong) == .same(.etag))
        let none = Validator(tagFields: [], dateFields: [], sent: HTTPDate(secondsSinceEpoch: 0))
        #expect(none == .none && !Validator(entityTag: nil, lastModified: nil, isDateWeak: true).isDateWeak)
    }

    @Test(
        "Without a recorded validator nothing is proven, and a validator that appears is a change",
        arguments: [Validator.none, strong, weak, dated, strongDated]
    )
    func nothingRecorded(current: Validator) {
        #expect(Validator.none.compare(with: current) == (current == .none ? .unproven : .changed))
    }

    @Test(
        "Only a strong tag is sent in If-Range",
        arguments: [
            (strong, "\"abc\""), (strongDated, "\"abc\""), (weak, nil), (weakDated, nil), (dated, nil), (.none, nil),
        ] as [(Validator, String?)]
    )
    func ifRange(validator: Validator, fieldValue: String?) {
        #expect(validator.ifRangeFieldValue == fieldValue)
        #expect(validator.isStrong == (fieldValue != nil))
    }

    @Test(
        "A description names the deciding validator",
        arguments: [
            (strong, "ETag \"abc\""), (strongDated, "ETag \"abc\""), (weak, "ETag W/\"abc\""),
            (dated, "Last-Modified Tue, 14 Nov 2023 22:13:20 GMT"),
            (weakDated, "ETag W/\"abc\", Last-Modified Tue, 14 Nov 2023 22:13:20 GMT"), (.none, "no validator"),
            (validator("\"a\u{202E}b\"", nil), "ETag \"a\\u{202E}b\""),
            (
                Validator(tagFields: ["v1"], dateFields: ["yesterday"]),
                "malformed ETag v1, malformed Last-Modified yesterday"
            ),
        ]
    )
    func messages(validator: Validator, description: String) {
        #expect(validator.description == description)
    }
}
