/// How long a response says its body is, in bytes (`Content-Length`: RFC 9110 §8.6, RFC 9112 §6.3).
package enum ContentLength {
    package enum Result: Hashable, Sendable {
        /// There is no such field.
        case absent
        case exact(Int64)
        /// Not a number, too large for `Int64`, or several that differ: the message has no trustworthy end.
        case malformed
    }

    /// Reads all `Content-Length` fields of one response, each element the value of a field line.
    ///
    /// Equal values collapse, in several fields or in one comma list. Values are compared as numbers.
    package static func parse(_ fieldValues: [String]) -> Result {
        var agreed: Int64?
        for fieldValue in fieldValues {
            var reader = FieldValueReader(fieldValue)
            repeat {
                reader.skipWhitespace()
                guard let length = reader.takeNumber(), length == agreed ?? length else { return .malformed }
                agreed = length
                reader.skipWhitespace()
            } while reader.skip(",")
            guard reader.isAtEnd else { return .malformed }
        }
        return agreed.map { .exact($0) } ?? .absent
    }
}
