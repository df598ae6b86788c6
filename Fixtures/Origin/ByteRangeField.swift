/// What a `Range` field requests of a representation (RFC 9110 §14.2).
enum ByteRangeField: Hashable, Sendable {
    /// Absent, malformed, with another unit, or with several ranges: the field is ignored, as RFC 9110 allows.
    case ignored
    /// It contains no byte of the representation.
    case unsatisfiable
    case bytes(Range<Int64>)

    init(_ field: String?, size: Int64) {
        self = .ignored
        guard let field, field.lowercased().hasPrefix("bytes=") else { return }
        let parts = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) else { return }
        let bounds = parts.map(Self.number)
        switch (bounds[0], bounds[1]) {
        case (nil, nil):
            return
        case (nil, let suffix?):
            self = suffix == 0 || size == 0 ? .unsatisfiable : .bytes(max(0, size - suffix)..<size)
        case (let first?, let last):
            if let last, last < first { return }
            let end = min(last ?? .max, size - 1)
            self = first <= end ? .bytes(first..<(end + 1)) : .unsatisfiable
        }
    }

    /// The digits' value, at most the largest offset; `nil` without digits.
    private static func number(_ digits: Substring) -> Int64? {
        digits.isEmpty ? nil : Int64(digits) ?? .max
    }
}
