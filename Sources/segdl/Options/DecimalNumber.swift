/// A decimal number without sign or exponent, stored exactly: `1.5` is 15/10.
struct DecimalNumber: Hashable {
    private let numerator: Int64
    private let denominator: Int64

    /// Digits with at most one decimal point. Nil for other text, and for numbers that do not fit.
    init?(_ text: some StringProtocol) {
        var numerator: Int64 = 0
        var denominator: Int64 = 1
        var hasPoint = false
        var hasDigits = false
        for byte in text.utf8 {
            if byte == UInt8(ascii: "."), !hasPoint {
                hasPoint = true
                continue
            }
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            hasDigits = true
            let (product, overflow) = numerator.multipliedReportingOverflow(by: 10)
            let (sum, overflowOfSum) = product.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            guard !overflow, !overflowOfSum else { return nil }
            numerator = sum
            // The numerator's overflow check does not bound the digits of 0.000…, so the denominator has its own.
            if hasPoint { denominator *= 10 }
            guard denominator <= 1_000_000_000 else { return nil }
        }
        guard hasDigits else { return nil }
        self.numerator = numerator
        self.denominator = denominator
    }

    /// The number times `factor`, rounded down; nil if it does not fit.
    func scaled(by factor: Int64) -> Int64? {
        let (high, low) = self.numerator.multipliedFullWidth(by: factor)
        guard high < self.denominator else { return nil }
        let (quotient, _) = UInt64(self.denominator).dividingFullWidth((UInt64(high), low))
        return Int64(exactly: quotient)
    }
}
