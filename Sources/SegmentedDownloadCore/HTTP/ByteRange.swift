/// A half-open run of bytes in a resource.
///
/// Ranges are half-open everywhere in the code; RFC 9110's inclusive form exists only in ``fieldValue`` and
/// ``init(first:last:)``.
package struct ByteRange: Hashable, Sendable {
    package let lowerBound: Int64
    package let upperBound: Int64

    package init(_ bounds: Range<Int64>) {
        precondition(bounds.lowerBound >= 0, "a byte range starts at or after zero")
        precondition(!bounds.isEmpty, "an empty byte range cannot be requested")
        self.lowerBound = bounds.lowerBound
        self.upperBound = bounds.upperBound
    }

    /// The range from `first` to `last`, both included, as a server writes it (RFC 9110 §14.1.2, §14.4).
    ///
    /// Nil if the positions do not form a range, or if the end does not fit in `Int64`.
    package init?(first: Int64, last: Int64) {
        let (end, overflow) = last.addingReportingOverflow(1)
        guard first >= 0, first <= last, !overflow else { return nil }
        self.lowerBound = first
        self.upperBound = end
    }

    /// The length in bytes, at least 1.
    package var length: Int64 { self.upperBound - self.lowerBound }

    package var bounds: Range<Int64> { self.lowerBound..<self.upperBound }

    /// The `Range` field value, such as `bytes=0-1048575`.
    package var fieldValue: String { "bytes=\(self.lowerBound)-\(self.upperBound - 1)" }
}
