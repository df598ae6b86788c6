/// What a `Content-Range` field says: which bytes a 206 carries, or how long the resource of a 416 is (RFC 9110 §14.4).
///
/// Strict, because bytes are written where this says: unit `bytes` in any case, one space, digits without sign or
/// space, first <= last < complete length. A number that exceeds `Int64.max` (more than 19 digits after leading zeros,
/// or overflow within 19) makes the field malformed and never wraps.
package enum ContentRange: Hashable, Sendable {
    /// `bytes 0-99/1000`, or `bytes 0-99/*` with no complete length.
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
