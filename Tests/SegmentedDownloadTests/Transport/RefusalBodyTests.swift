import Foundation
import HTTPTypes
import Origin
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// What servers say in the bodies of refusals.
@Suite("Bodies of refusals")
struct RefusalBodyTests {
    private static let amazon = """
        <?xml version="1.0"?><Error><Code>RequestTimeTooSkewed</Code><Message>The difference is &gt; 15 min.</Message></Error>
        """

    private static func head(_ type: String?) -> ResponseHead {
        var fields = HTTPFields()
        fields[.contentType] = type
        return ResponseHead(status: 403, fields: fields)
    }

    @Test(
        "Sentences and codes are found in XML and JSON, and other bodies say nothing",
        arguments: [
            ("application/xml", Self.amazon, "RequestTimeTooSkewed: The difference is > 15 min."),
            ("text/xml; charset=utf-8", "<Error><Code>NoSuchKey</Code>", "NoSuchKey"),
            ("application/xml", "<Error>", nil), ("application/xml", "", nil),
            (
                "application/problem+json", #"{"title":"Gone","detail":"Moved in May","status":403}"#,
                "Gone: Moved in May"
            ),
            ("application/json", #"{"message":"Not Found"}"#, "Not Found"),
            ("application/json", #"{"error":"Invalid token"}"#, "Invalid token"),
            ("application/json", #"{"error":{"code":403,"message":"Denied"}}"#, "Denied"),
            ("application/json", #"{"error":"invalid","error_description":"Expired"}"#, "invalid: Expired"),
            ("application/json", #"{"message":"#, nil), ("application/json", "[1]", nil),
            ("text/html", Self.amazon, nil), (nil, Self.amazon, nil),
        ] as [(String?, String, String?)])
    func text(type: String?, body: String, text: String?) {
        #expect(RefusalBody.text(in: Array(body.utf8), after: Self.head(type)) == text)
        #expect(RefusalBody.isExpected(Self.head(type)) == (type != nil && type != "text/html"))
    }

    @Test("The body of a refusal is in the message, also if it is not complete", arguments: [0, 100])
    func message(missing: Int) async throws {
        try await Harness.run { harness in
            let raw =
                "HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nContent-Length: "
                + "\(Self.amazon.utf8.count + missing)\r\n\r\n\(Self.amazon)"
            let encoded = raw.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            guard case .failure(let error) = await harness.fetch("/1K/file?raw=\(encoded)", { $0.retries = 1 }) else {
                Issue.record("a refusal was stored")
                return
            }
            #expect(error.code == .server && error.status == 403, "\(error)")
            #expect(error.message.hasSuffix(": RequestTimeTooSkewed: The difference is > 15 min."), "\(error)")
        }
    }
}
