extension Sequence<UInt8> {
    /// The bytes as lowercase hexadecimal digits, two for each byte.
    package var hex: String {
        var digits: [UInt8] = []
        digits.reserveCapacity(2 * self.underestimatedCount)
        for byte in self {
            digits.append(Self.digit(byte >> 4))
            digits.append(Self.digit(byte & 0x0F))
        }
        return String(decoding: digits, as: UTF8.self)
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
