#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A JSON value, reduced to what a list of files needs.
package enum JSONValue: Hashable {
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])
    /// A number, a Boolean or null.
    case other

    /// 32: lists have a few levels. A deeper document could exhaust the stack.
    package static let depthMax = 32

    /// Parses a document.
    ///
    /// - Throws: The decoder's error if the bytes are not JSON.
    init(parsing bytes: [UInt8]) throws {
        let decoder = JSONDecoder()
        if let key = JSONHabits.key { decoder.userInfo[key] = JSONHabits() }
        self = try decoder.decode(JSONValue.self, from: Data(bytes))
    }
}

extension JSONValue: Decodable {
    /// The kind of a value.
    enum Kind: Hashable, CaseIterable {
        case string, object, array, other
    }

    package init(from decoder: any Decoder) throws {
        let path = decoder.codingPath
        guard path.count <= Self.depthMax else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "it is nested more than \(Self.depthMax) levels deep"))
        }
        let habits = JSONHabits.key.flatMap { decoder.userInfo[$0] } as? JSONHabits
        let usual = habits?.kind(at: path)
        if let usual, let value = try Self.read(usual, from: decoder) {
            self = value
            return
        }
        for kind in Kind.allCases where kind != usual {
            guard let value = try Self.read(kind, from: decoder) else { continue }
            habits?.note(kind, at: path)
            self = value
            return
        }
        self = .other
    }

    /// Decodes a value of a kind; `nil` if it is of another kind.
    private static func read(_ kind: Kind, from decoder: any Decoder) throws -> JSONValue? {
        switch kind {
        case .string: return (try? decoder.singleValueContainer().decode(String.self)).map { .string($0) }
        case .object:
            guard let container = try? decoder.container(keyedBy: Key.self) else { return nil }
            var object: [String: JSONValue] = [:]
            for key in container.allKeys { object[key.stringValue] = try container.decode(JSONValue.self, forKey: key) }
            return .object(object)
        case .array:
            guard var container = try? decoder.unkeyedContainer() else { return nil }
            var array: [JSONValue] = []
            while !container.isAtEnd { array.append(try container.decode(JSONValue.self)) }
            return .array(array)
        case .other:
            let container = try decoder.singleValueContainer()
            let isOther = container.decodeNil() || (try? container.decode(Double.self)) != nil
            return isOther || (try? container.decode(Bool.self)) != nil ? .other : nil
        }
    }

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
