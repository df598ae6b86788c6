/// Checks the bytes of a JSON-RPC message before a decoder reads them.
///
/// A decoder needs much time and stack for some short texts, such as 100,000 nested brackets. This check reads each byte
/// once. It does not check the grammar: the decoder does. A fuzzer compiles this file alone, so it imports nothing.
package enum RPCText {
    /// Why a text is rejected.
    package enum Problem: Error, Hashable, CaseIterable {
        /// It is longer than ``RPCText/lengthMax``.
        case length
        /// It is not valid UTF-8.
        case encoding
        /// It contains a control character that JSON forbids. A decoder could take bytes of zero for UTF-16.
        case control
        /// It is nested deeper than ``RPCText/depthMax``.
        case depth
        /// It has more values than ``RPCText/valuesMax``.
        case values
    }

    /// 1 MiB: a metalink of some hundred files in base64.
    package static let lengthMax = 1 << 20
    /// 32: calls in a `system.multicall` of a batch have 7 levels.
    package static let depthMax = 32
    /// 65,536: some thousand calls. A decoder needs a fifth of a second for them.
    package static let valuesMax = 1 << 16

    /// Nil if a decoder may read the text.
    package static func problem(in bytes: [UInt8]) -> Problem? {
        guard bytes.count <= Self.lengthMax else { return .length }
        var depth = 0
        var values = 1
        var isInString = false
        var isEscaped = false
        for byte in bytes {
            switch byte {
            case 0x09, 0x0A, 0x0D: break
            case ..<0x20: return .control
            default: break
            }
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                values += 1
                guard depth <= Self.depthMax else { return .depth }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: ","):
                values += 1
            default: break
            }
            guard values <= Self.valuesMax else { return .values }
        }
        return String(validating: bytes, as: UTF8.self) == nil ? .encoding : nil
    }
}
