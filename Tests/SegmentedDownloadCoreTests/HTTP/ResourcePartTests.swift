import HTTPTypes
import SegmentedDownloadCore
import Testing

@Suite("A part of a resource")
struct ResourcePartTests {
    /// What an honest server answers to a `Range` field, for a resource of this length.
    private static func answer(_ field: String, length: Int64) -> ResponseHead {
        let ends = field.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        let first = Int64(ends[0]) ?? 0
        guard first < length else {
            return ResponseHead(status: 416, fields: [.contentRange: "bytes */\(length)"])
        }
        let last = min(Int64(ends[1]) ?? length - 1, length - 1)
        return ResponseHead(
            status: 206,
            fields: [.contentRange: "bytes \(first)-\(last)/\(length)", .contentLength: "\(last - first + 1)"])
    }

    @Test("Bytes are accepted only at their place in the part, for every part, request and length up to 7")
    func exhaustive() {
        for length in Int64(0)...7 {
            for first in Int64(0)...7 {
                for last in [nil] + (first...8).map({ Optional($0) }) {
                    let part = ResourcePart(DownloadOptions.Part(first: first, last: last))
                    let partLength = max(0, min(last.map { $0 + 1 } ?? length, length) - first)
                    #expect(part.length(in: length) ?? 0 == partLength)
                    for lower in Int64(0)...7 {
                        for upper in [nil] + ((lower + 1)...9).map({ Optional($0) }) {
                            let request = RangeRequest(lowerBound: lower, upperBound: upper)
                            let head = Self.answer(part.fieldValue(for: request), length: length)
                            let response = RangeResponse(request: request, head: head, locator: nil, part: part)
                            let end = min(upper ?? partLength, partLength)
                            if lower < end {
                                #expect(response.resource?.completeLength == partLength)
                                #expect(response.bodyStart == lower && response.bodyEnd == end)
                            } else {
                                #expect(!response.hasBytes, "\(length) \(part) \(request): \(response)")
                            }
                        }
                    }
                }
            }
        }
    }

    @Test(
        "A head that is not of the part is refused",
        arguments: [
            "bytes 0-9/1000", "bytes 99-108/1000", "bytes 100-200/1000", "bytes 100-109/105", "bytes 101-109/1000",
            "bytes 100-109/*", "octets 100-109/1000", "bytes 100-109", "bytes 100-99/1000", "",
            "bytes 9223372036854775807-9223372036854775807/*",
        ])
    func foreign(field: String) {
        let part = ResourcePart(DownloadOptions.Part(first: 100, last: 199))
        let head = ResponseHead(status: 206, fields: [.contentRange: field])
        let request = RangeRequest(lowerBound: 0, upperBound: 10)
        #expect(!RangeResponse(request: request, head: head, locator: nil, part: part).hasBytes)
    }

    @Test("A whole file is never a part, and no status is taken for an empty part")
    func statuses() {
        let part = ResourcePart(DownloadOptions.Part(first: 0))
        for status in 200..<600 {
            for fields in [HTTPFields(), [.contentLength: "0"], [.contentRange: "bytes */0"]] {
                let head = ResponseHead(status: status, fields: fields)
                let response = RangeResponse(request: RangeRequest(), head: head, locator: nil, part: part)
                #expect(!response.hasBytes, "\(status) \(response)")
                if case .unsatisfiable = response { Issue.record("\(status)") }
                if case .ignoresRanges = response { Issue.record("\(status)") }
            }
        }
    }

    @Test("A 200 to If-Range is a change if the validator differs")
    func changes() {
        let part = ResourcePart(DownloadOptions.Part(first: 10, last: 19))
        let identity = RemoteResource(
            completeLength: 10, validator: Validator(tagFields: ["\"a\""], dateFields: []))
        let request = RangeRequest(lowerBound: 0, upperBound: 10, identity: identity, sendsIfRange: true)
        let head = ResponseHead(status: 200, fields: [.eTag: "\"b\"", .contentLength: "1000"])
        guard case .changed = RangeResponse(request: request, head: head, locator: nil, part: part) else {
            Issue.record("not a change")
            return
        }
    }
}
