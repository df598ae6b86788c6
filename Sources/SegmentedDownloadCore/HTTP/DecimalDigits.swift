/// A non-negative decimal number: one or more ASCII digits, without sign or space (`1*DIGIT`, RFC 9110
/// §8.6).
///
/// The grammar has no upper bound, so a well-formed number may be too large for `Int64`. Leading zeros are ignored.
package enum DecimalDigits: Hashable {
    case number(Int64)
    /// Well formed, but greater than `Int64.max`.
    case tooLarge

    /// `Int64.max`, 9223372036854775807, has 19 digits. A longer number cannot fit.
    private static let significantDigitsMax = 19

    package init?(_ text: some Collection<UInt8>) {
        guard !text.isEmpty, text.allSatisfy({ $0.isASCIIDigit }) else { return nil }
        let significant = text.drop { $0 == UInt8(ascii: "0") }
        guard significant.count <= Self.significantDigitsMax else {
            self = .tooLarge
            return
        }
        var value: Int64 = 0
        for byte in significant {
            let (shifted, overflowShifting) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflowAdding) = shifted.addingReportingOverflow(Int64(byte & 0x0F))
            guard !overflowShifting, !overflowAdding else {
                self = .tooLarge
                return
            }
            value = sum
        }
        self = .number(value)
    }

    package var exact: Int64? {
        switch self {
        case .number(let value): value
        case .tooLarge: nil
        }
    }
}
