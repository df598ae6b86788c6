import HTTPTypes
import SegmentedDownloadCore
import Testing

/// The rule by which a byte is accepted, implemented a second time.
@Suite("The acceptance rule")
struct AcceptanceRuleTests {
    private static let values: [HTTPField.Name: [String]] = [
        .contentRange: [
            "bytes 100-199/1000", "bytes 100-149/1000", "bytes 100-149/*", "bytes 100-200/1000", "bytes 0-99/1000",
            "bytes 100-199/2000", "bytes 100-199/150", "Bytes 100-199/1000", "bytes 199-100/1000", "bytes */1000",
            "items 100-199/1000", "bytes 0-999/1000", "bytes 100-18446744073709551715/*", "nonsense",
        ],
        .contentLength: ["100", "50", "1000", "100, 100", "100, 50", "-1", "x", "18446744073709551716"],
        .contentEncoding: ["gzip", "identity", ""],
        .eTag: ["\"a\"", "\"a\"", "\"a\"", "\"b\"", "W/\"a\"", "a"],
        .lastModified: ["Tue, 14 Nov 2023 22:13:20 GMT", "Tue, 14 Nov 2023 22:13:21 GMT", "today"],
        .contentType: ["multipart/byteranges; boundary=x", "text/html", "MULTIPART/BYTERANGES"],
        .transferEncoding: ["chunked"],
    ]

    private static let likelihoods: [(HTTPField.Name, Int)] = [
        (.contentRange, 85), (.contentLength, 60), (.contentEncoding, 10), (.eTag, 70), (.lastModified, 30),
        (.contentType, 10), (.transferEncoding, 10),
    ]

    private static func head(using generator: inout SplitMix64) -> ResponseHead {
        var fields = HTTPFields()
        for (name, percent) in Self.likelihoods {
            while Int.random(in: 0..<100, using: &generator) < (fields[name] == nil ? percent : 5) {
                let value = Self.values[name]?.randomElement(using: &generator) ?? ""
                fields.append(HTTPField(name: name, value: value))
            }
        }
        return ResponseHead(status: [200, 206, 206, 206, 416].randomElement(using: &generator) ?? 206, fields: fields)
    }

    /// Parses `bytes a-b/c` without the code under test.
    private static func range(_ value: String) -> (first: Int64, last: Int64, total: Int64?)? {
        guard value.lowercased().hasPrefix("bytes ") else { return nil }
        let parts = value.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int64(ends[0]), let last = Int64(ends[1]) else { return nil }
        guard parts[1] != "*" else { return (first, last, nil) }
        return Int64(parts[1]).map { (first, last, $0) }
    }

    /// FAULTS.md, "The acceptance rule", for a recorded identity of 1000 bytes.
    private static func mayWrite(_ request: RangeRequest, _ head: ResponseHead) -> Bool {
        guard head.status == 206,
            !head.fields[values: .contentType].contains(where: { $0.lowercased().hasPrefix("multipart/byteranges") }),
            head.fields[values: .contentRange].count == 1,
            let range = Self.range(head.fields[values: .contentRange][0]),
            range.first == request.lowerBound, range.first <= range.last, range.last < request.upperBound ?? .max,
            range.last < range.total ?? 1000, range.total ?? 1000 == 1000
        else { return false }
        let lengths = Set(
            head.fields[values: .contentLength].joined(separator: ",").split(separator: ",").map {
                $0.filter { $0 != " " }
            })
        let codings = head.fields[values: .transferEncoding].joined(separator: ",").lowercased()
        guard codings.isEmpty || codings == "chunked" else { return false }
        let isChunked = !codings.isEmpty
        guard isChunked ? lengths.isEmpty : lengths.isEmpty || lengths == ["\(range.last - range.first + 1)"] else {
            return false
        }
        return Self.agrees(request, head)
    }

    private static func agrees(_ request: RangeRequest, _ head: ResponseHead) -> Bool {
        let codings = head.fields[values: .contentEncoding].filter { !["", "identity"].contains($0) }
        guard codings.isEmpty, let validator = request.identity?.validator else { return codings.isEmpty }
        if let tag = validator.entityTag, head.fields[values: .eTag] != [tag.fieldValue] { return false }
        if validator.isStrong { return true }
        if validator == .none {
            // Malformed ones count too: a validator that appears is a difference.
            return head.fields[values: .eTag].isEmpty && head.fields[values: .lastModified].isEmpty
        }
        guard let date = validator.lastModified else { return true }
        return head.fields[values: .lastModified] == [date.fieldValue]
    }

    @Test("Of 30,000 random heads a byte is accepted only where the acceptance rule holds", arguments: UInt64(0)..<4)
    func acceptanceRule(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let date = HTTPDate(fieldValue: "Tue, 14 Nov 2023 22:13:20 GMT")
        let validators = [
            Validator(entityTag: EntityTag(fieldValue: "\"a\""), lastModified: nil),
            Validator(entityTag: EntityTag(fieldValue: "\"a\""), lastModified: date),
            Validator(entityTag: EntityTag(fieldValue: "W/\"a\""), lastModified: date),
            Validator(entityTag: nil, lastModified: date), .none,
        ]
        var accepted = 0
        for _ in 0..<7_500 {
            let identity = RemoteResource(
                completeLength: 1000, validator: validators.randomElement(using: &generator) ?? .none)
            let request = RangeRequest(
                lowerBound: 100, upperBound: Bool.random(using: &generator) ? 200 : nil, identity: identity)
            let head = Self.head(using: &generator)
            switch RangeResponse(request: request, head: head) {
            case .partial(let range, let resource):
                accepted += 1
                #expect(Self.mayWrite(request, head), "replay with \(seed): \(head)")
                #expect(range.upperBound <= 1000 && resource.completeLength == 1000)
            case .whole(let resource):
                accepted += 1
                let isWhole = head.status == 200 && head.fields[values: .contentRange].isEmpty
                #expect(isWhole && Self.agrees(request, head), "replay with \(seed): \(head)")
                #expect(resource.completeLength ?? 1000 == 1000)
            case .notModified, .unsatisfiable, .changed, .moved, .ignoresRanges, .redirected, .refused, .unauthorized,
                .rejected,
                .malformed:
                #expect(!Self.mayWrite(request, head), "replay with \(seed): refused \(head)")
            }
        }
        #expect(accepted > 100, "the heads are too hostile to prove anything")
    }
}
