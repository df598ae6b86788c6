import Foundation

/// A JSON value that distinguishes Booleans from numbers, unlike Foundation's reader.
enum JSON: Hashable, Decodable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSON].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }

    init(_ text: some StringProtocol) throws {
        self = try JSONDecoder().decode(JSON.self, from: Data(text.utf8))
    }

    /// The objects of a text with one object per line.
    static func lines(_ text: String) throws -> [JSON] {
        try text.split(separator: "\n").map { try JSON($0) }
    }

    /// The value of an object's member.
    subscript(_ key: String) -> JSON? {
        get { self.members?[key] }
        set {
            guard case .object(var members) = self else { return }
            members[key] = newValue
            self = .object(members)
        }
    }

    var members: [String: JSON]? { if case .object(let members) = self { members } else { nil } }
    var elements: [JSON]? { if case .array(let elements) = self { elements } else { nil } }
    var text: String? { if case .string(let text) = self { text } else { nil } }
    var double: Double? { if case .number(let number) = self { number } else { nil } }
}
