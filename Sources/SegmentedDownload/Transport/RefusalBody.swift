import HTTPTypes
import SegmentedDownloadCore

/// What the body of a refusal says, if it has a known form: XML as of S3 and Azure, or JSON as of RFC 9457, the Hugging Face
/// Hub, GitHub, Google and OAuth.
enum RefusalBody {
    /// 4 KiB: such bodies have some hundred bytes.
    static let lengthMax = 4 << 10
    /// 1 s: a body of one packet follows its head at once. The status alone is enough for a message.
    static let timeMax: Duration = .seconds(1)

    private enum Form {
        case xml, json

        init?(_ head: ResponseHead) {
            // A decoder is not worth it here.
            guard head.fields[.contentEncoding] == nil, let field = head.fields[.contentType] else { return nil }
            let type = field.prefix { $0 != ";" && $0 != " " }.lowercased()
            if type.hasSuffix("/xml") || type.hasSuffix("+xml") {
                self = .xml
            } else if type.hasSuffix("/json") || type.hasSuffix("+json") {
                self = .json
            } else {
                return nil
            }
        }
    }

    /// Whether a body of a known form follows.
    static func isExpected(_ head: ResponseHead) -> Bool { Form(head) != nil }

    /// The sentence in a body, with a code or a title before it; `nil` if there is none.
    static func text(in bytes: [UInt8], after head: ResponseHead) -> String? {
        let parts: [String?] =
            switch Form(head) {
            case .xml: Self.parts(ofXML: String(decoding: bytes, as: UTF8.self))
            case .json: (try? JSONValue(parsing: bytes)).map { Self.parts(of: $0) } ?? []
            case nil: []
            }
        // In one line.
        let found = parts.compactMap { $0?.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
            .filter { !$0.isEmpty }
        return found.isEmpty ? nil : found.joined(separator: ": ")
    }

    private static func parts(ofXML text: String) -> [String?] {
        ["Code", "Message"].map { name in
            guard let start = text.firstRange(of: "<\(name)>"),
                let end = text[start.upperBound...].firstRange(of: "</\(name)>")
            else { return nil }
            return CharacterReferences.decode(String(text[start.upperBound..<end.lowerBound]))
        }
    }

    private static func parts(of value: JSONValue) -> [String?] {
        guard case .object(let object) = value else { return [] }
        if case .object? = object["error"], let inner = object["error"] { return Self.parts(of: inner) }
        let texts = object.compactMapValues { value -> String? in
            if case .string(let text) = value { text } else { nil }
        }
        // RFC 9457 has a title and a detail; OAuth an error and its description.
        return [
            texts["title"] ?? texts["error"], texts["detail"] ?? texts["message"] ?? texts["error_description"],
        ]
    }
}

extension RangeResponse {
    /// The response, with what its body says if it is a refusal whose fields say nothing.
    func explained(by body: any ResponseBody, after head: ResponseHead) async -> RangeResponse {
        guard self.isExplainable, RefusalBody.isExpected(head), RefusalText.inFields(of: head) == nil else {
            return self
        }
        let bytes = await body.beginning(lengthMax: RefusalBody.lengthMax, within: RefusalBody.timeMax)
        return RefusalBody.text(in: bytes, after: head).map { self.saying($0) } ?? self
    }
}
