#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A value of a JSON-RPC message.
package enum RPCValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    /// A number that is not a whole one, or too large for `int`.
    case double(Double)
    case string(String)
    case array([RPCValue])
    case object([String: RPCValue])

    /// Nil unless the bytes are JSON within the limits of ``RPCText``.
    package init?(parsing bytes: [UInt8]) {
        guard RPCText.problem(in: bytes) == nil,
            let value = try? JSONDecoder().decode(Self.self, from: Data(bytes))
        else { return nil }
        self = value
    }

    /// The value as JSON; nil if a number in it is not finite.
    package var bytes: [UInt8]? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { [UInt8]($0) }
    }

    /// A number as aria2 writes it: in a string.
    package static func digits(_ number: some BinaryInteger) -> Self { .string("\(number)") }
    /// A Boolean as aria2 writes it: in a string.
    package static func word(_ flag: Bool) -> Self { .string("\(flag)") }

    /// The number of values in it.
    package var count: Int {
        switch self {
        case .null, .bool, .int, .double, .string: 1
        case .array(let values): values.reduce(1) { $0 + $1.count }
        case .object(let values): values.values.reduce(1) { $0 + $1.count }
        }
    }

    /// A string, number or Boolean as text: aria2's options are strings, but clients also send the others.
    package var text: String? {
        switch self {
        case .string(let text): text
        case .int(let number): "\(number)"
        case .double(let number): "\(number)"
        case .bool(let flag): "\(flag)"
        case .null, .array, .object: nil
        }
    }

    /// A whole number. As in aria2, the fraction of another number is dropped.
    package var integer: Int? {
        switch self {
        case .int(let number): Int(exactly: number)
        case .double(let number): Int(exactly: number.rounded(.towardZero))
        case .null, .bool, .string, .array, .object: nil
        }
    }
}

extension RPCValue: Codable {
    package init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        // Strings come first, because most values are strings and an attempt that fails is slow.
        if let text = try? value.decode(String.self) {
            self = .string(text)
        } else if value.decodeNil() {
            self = .null
        } else if let object = try? value.decode([String: RPCValue].self) {
            self = .object(object)
        } else if let array = try? value.decode([RPCValue].self) {
            self = .array(array)
        } else if let number = try? value.decode(Int64.self) {
            self = .int(number)
        } else if let flag = try? value.decode(Bool.self) {
            self = .bool(flag)
        } else {
            self = .double(try value.decode(Double.self))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .null: try value.encodeNil()
        case .bool(let flag): try value.encode(flag)
        case .int(let number): try value.encode(number)
        case .double(let number): try value.encode(number)
        case .string(let text): try value.encode(text)
        case .array(let values): try value.encode(values)
        case .object(let values): try value.encode(values)
        }
    }
}
