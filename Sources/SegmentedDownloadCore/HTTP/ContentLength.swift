/// The body length that a response announces, in bytes (`Content-Length`: RFC 9110 §8.6, RFC 9112 §6.3).
package enum ContentLength {
    package enum Result: Hashable, Sendable {
        /// The response has no such field.
        case absent
        case exact(Int64)
        /// Not a number, too large for `Int64`, or several different values. The end of the message is then unknown.
        case malformed
    }

    /// Parses all `Content-Length` field lines of one response.
    ///
    /// Equal values, in several fields or in one comma-separated list, count as one. Values are compared as numbers.
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
