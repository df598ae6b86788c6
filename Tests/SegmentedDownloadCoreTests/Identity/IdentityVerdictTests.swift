import SegmentedDownloadCore
import Testing

/// The table of ``IdentityVerdict``, row by row.
@Suite("Whether a response is of the same file")
struct IdentityVerdictTests {
    private static func name(_ requested: String, _ target: String) -> ResourceName {
        ResourceName(requested: requested, target: target)
    }

    private static let here = Self.name("http://h/latest", "http://h/builds/1")
    private static let sameOrigin = Self.name("http://h/latest", "http://h/builds/2?token=x")
    private static let otherOrigin = Self.name("http://h/latest", "http://mirror/builds/1")
    private static let otherRequest = Self.name("http://h/other", "http://h/builds/1")
    private static let elsewhere = Self.name("http://g/file", "http://g/file")

    private static func resource(
        _ name: ResourceName, tag: String? = nil, date: Int64? = nil, length: Int64 = 100, begun: Int64? = nil
    ) -> RemoteResource {
        var resource = RemoteResource(
            completeLength: length,
            validator: Validator(
                entityTag: tag.flatMap { EntityTag(fieldValue: $0) },
                lastModified: date.flatMap { HTTPDate(secondsSinceEpoch: $0) }),
            locator: .named(name))
        resource.begunAt = begun.flatMap { HTTPDate(secondsSinceEpoch: $0) }
        return resource
    }

    /// As this run knows it, and as a manifest stores it.
    private static func forms(_ resource: RemoteResource) -> [RemoteResource] {
        var stored = resource
        stored.locator = resource.locator?.fingerprint(salt: 7).map { .recorded($0) }
        return [resource, stored]
    }

    private enum Kind { case same, unproven, changed, other, nothing }

    private static func kind(_ verdict: IdentityVerdict) -> Kind {
        switch verdict {
        case .same: .same
        case .unproven: .unproven
        case .changed: .changed
        case .elsewhere(.some): .other
        case .elsewhere(nil): .nothing
        }
    }

    @Test("Validators of one request and origin contradict each other, whatever path a redirect led to")
    func places() {
        let rows: [(ResourceName, tag: String, date: Int64, Kind)] = [
            (Self.here, "\"a\"", 50, .same), (Self.here, "\"b\"", 50, .changed), (Self.here, "\"a\"", 51, .unproven),
            (Self.sameOrigin, "\"a\"", 50, .nothing), (Self.sameOrigin, "\"b\"", 50, .changed),
            (Self.sameOrigin, "\"a\"", 51, .nothing),
            // Mirrors have tags and dates of their own, but none has a file that is younger than the download.
            (Self.otherOrigin, "\"a\"", 50, .nothing), (Self.otherOrigin, "\"b\"", 51, .nothing),
            (Self.otherOrigin, "\"b\"", 101, .changed),
            // A copy on the same server has at least an equal tag or date.
            (Self.otherRequest, "\"a\"", 50, .nothing), (Self.otherRequest, "\"b\"", 50, .nothing),
            (Self.otherRequest, "\"a\"", 51, .nothing), (Self.otherRequest, "\"b\"", 51, .other),
            (Self.elsewhere, "\"b\"", 51, .nothing), (Self.elsewhere, "\"b\"", 101, .other),
        ]
        for recorded in Self.forms(Self.resource(Self.here, tag: "\"a\"", date: 50, begun: 100)) {
            for (name, tag, date, kind) in rows {
                let verdict = recorded.verdict(on: Self.resource(name, tag: tag, date: date))
                #expect(Self.kind(verdict) == kind, "\(name) \(tag) \(date)")
            }
        }
    }

    @Test("A date that the recorded response had too is no evidence against a mirror, however late")
    func equalDate() {
        let recorded = Self.resource(Self.here, date: 150, begun: 100)
        #expect(recorded.verdict(on: Self.resource(Self.otherOrigin, date: 150)) == .elsewhere(nil))
    }

    @Test("Another length, coding or digest of the same algorithm is another file anywhere")
    func content() throws {
        let digests = try ["0", "1"].map { try #require(ExpectedDigest("md5=\(String(repeating: $0, count: 32))")) }
        for (name, kind) in [
            (Self.here, Kind.changed), (Self.sameOrigin, .changed), (Self.otherOrigin, .changed),
            (Self.elsewhere, .other),
        ] {
            var recorded = Self.resource(Self.here)
            recorded.wholeLength = 1000
            recorded.state([digests[0]])
            var others = [Self.resource(name, length: 99)]
            for change in [{ $0.wholeLength = 999 }, { $0.contentEncoding = "gzip" }, { $0.state([digests[1]]) }]
                as [(inout RemoteResource) -> Void]
            {
                var other = Self.resource(name)
                change(&other)
                others.append(other)
            }
            for other in others { #expect(Self.kind(recorded.verdict(on: other)) == kind) }
            var equal = Self.resource(name)
            equal.wholeLength = 1000
            equal.state([digests[0]])
            #expect(recorded.verdict(on: equal).contradiction == nil)
        }
    }

    @Test("What a place stated is remembered while bytes come from another one")
    func memory() {
        let first = Self.resource(Self.here, tag: "\"a\"", begun: 100)
        let second = Self.resource(Self.otherOrigin, tag: "\"m\"").adding(first, isSamePlace: false)
        #expect(second.begunAt == first.begunAt)
        for recorded in Self.forms(second) {
            #expect(Self.kind(recorded.verdict(on: Self.resource(Self.here, tag: "\"b\""))) == .changed)
            #expect(Self.kind(recorded.verdict(on: Self.resource(Self.here, tag: "\"a\""))) == .nothing)
            #expect(Self.kind(recorded.verdict(on: Self.resource(Self.otherOrigin, tag: "\"m\""))) == .same)
        }
        // Back at the first place its statement is that of the resource, and the mirror's is the other one.
        let third = Self.resource(Self.here, tag: "\"a\"").adding(second, isSamePlace: false)
        #expect(third.elsewhere.count == 1)
        #expect(Self.kind(third.verdict(on: Self.resource(Self.otherOrigin, tag: "\"n\""))) == .changed)
    }

    @Test("A resource of an earlier version, which stored less, still contradicts another validator")
    func earlierVersion() throws {
        var recorded = Self.resource(Self.here, tag: "\"a\"")
        let fingerprint = ResourceFingerprint(of: Self.here, salt: 7)
        recorded.locator = ResourceFingerprint(salt: 7, hash: fingerprint.hash).map { .recorded($0) }
        #expect(Self.kind(recorded.verdict(on: Self.resource(Self.here, tag: "\"a\""))) == .same)
        #expect(Self.kind(recorded.verdict(on: Self.resource(Self.sameOrigin, tag: "\"a\""))) == .nothing)
        #expect(Self.kind(recorded.verdict(on: Self.resource(Self.sameOrigin, tag: "\"b\""))) == .changed)
    }

    @Test(
        "An origin is what precedes the path",
        arguments: [
            ("http://h/a/b", "http://h"), ("https://h:8443", "https://h:8443"), ("http://[::1]:80/", "http://[::1]:80"),
            ("file", "file"), ("", ""),
        ])
    func origin(target: String, origin: String) {
        #expect(Self.name("", target).origin == origin)
    }
}
