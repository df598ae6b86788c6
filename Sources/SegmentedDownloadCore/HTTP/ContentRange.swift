import HTTPTypes

/// The value of a `Content-Range` field: the bytes in a 206, or the complete length in a 416 (RFC 9110 §14.4).
///
/// Parsing is strict, because this field determines where bytes are written: unit `bytes` in any case, one space,
/// digits without sign or space, first <= last < complete length. A number above `Int64.max` makes the field malformed;
/// it never wraps.
package enum ContentRange: Hashable, Sendable {
    /// `bytes 0-99/1000`, or `bytes 0-99/*` without a complete length.
    case satisfied(ByteRange, completeLength: Int64?)
    /// `bytes */1000`.
    case unsatisfied(completeLength: Int64)

    package init?(fieldValue: String) {
        var reader = FieldValueReader(fieldValue)
        guard reader.skipIgnoringCase("bytes"), reader.skip(" ") else { return nil }

        if reader.skip("*/") {
            guard let completeLength = reader.takeNumber(), reader.isAtEnd else { return nil }
            self = .unsatisfied(completeLength: completeLength)
            return
        }

        guard
            let first = reader.takeNumber(), reader.skip("-"),
            let last = reader.takeNumber(), reader.skip("/"),
            let range = ByteRange(first: first, last: last)
        else { return nil }

        if reader.skip("*") {
            guard reader.isAtEnd else { return nil }
            self = .satisfied(range, completeLength: nil)
        } else {
            guard let completeLength = reader.takeNumber(), reader.isAtEnd, last < completeLength else { return nil }
            self = .satisfied(range, completeLength: completeLength)
        }
    }
}

extension ContentRange {
    /// The complete length that the only `Content-Range` field of a 206 states; nil if it states none.
    package static func completeLength(in head: ResponseHead) -> Int64? {
        guard let value = head.single(.contentRange), case .satisfied(_, let length) = ContentRange(fieldValue: value)
        else { return nil }
        return length
    }
}
