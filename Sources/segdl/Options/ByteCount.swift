import ArgumentParser

/// A number of bytes: as an argument such as `4M` or `1.5GiB`, and as text such as `1.5 GiB`.
struct ByteCount: Hashable, ExpressibleByArgument {
    private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

    let bytes: Int64

    init(_ bytes: Int64) {
        self.bytes = bytes
    }

    /// Digits with an optional fraction, one of `k M G T` in either case or none, and an optional `B` or `iB`.
    init?(argument: String) {
        var text = argument.lowercased()[...]
        if text.hasSuffix("ib") {
            text = text.dropLast(2)
            guard text.last.map({ "kmgt".contains($0) }) == true else { return nil }
        } else if text.hasSuffix("b") {
            text = text.dropLast()
        }
        var shift = 0
        if let place = text.last.flatMap({ "kmgt".firstIndex(of: $0) }) {
            shift = 10 * ("kmgt".distance(from: "kmgt".startIndex, to: place) + 1)
            text = text.dropLast()
        }
        guard let number = DecimalNumber(text) else { return nil }
        guard let bytes = number.scaled(by: 1 << shift) else { return nil }
        self.bytes = bytes
    }

    var defaultValueDescription: String { self.description }
}

extension ByteCount: CustomStringConvertible {
    /// Three significant digits in the largest unit that fits: `9.87 KiB`, `84.2 MiB`, `512 MiB`. Bytes are exact, and
    /// from 1000 to 1023 there are four digits.
    var description: String {
        let unit = self.unit
        return "\(self.amount(in: unit)) \(Self.units[unit])"
    }

    /// `3.10 of 4.00 GiB`, or `512 MiB of 4.00 GiB` if the units differ, so that the first number changes visibly.
    func description(of total: ByteCount, separator: String = " of ") -> String {
        let unit = self.unit
        return "\(unit == total.unit ? self.amount(in: unit) : self.description)\(separator)\(total)"
    }

    /// A rate in bytes per second: `84.2 MiB/s`.
    static func perSecond(_ rate: Double) -> String { "\(ByteCount(Int64(min(max(rate, 0), 1e18))))/s" }

    /// The exponent of 1024 that gives a number below 1024.
    private var unit: Int {
        var unit = 0
        // A number that would be rounded up to 1024 is shown as 1.00 in the next unit.
        while Double(self.bytes) / Self.size(of: unit) >= (unit == 0 ? 1024 : 1023.5), unit < Self.units.count - 1 {
            unit += 1
        }
        return unit
    }

    private func amount(in unit: Int) -> String {
        guard unit > 0 else { return "\(self.bytes)" }
        let number = Double(self.bytes) / Self.size(of: unit)
        // The limits are those from which a number would be rounded up to one more digit before the point.
        let (places, scale): (Int, Int64) = number < 9.995 ? (2, 100) : number < 99.95 ? (1, 10) : (0, 1)
        let scaled = Int64((number * Double(scale)).rounded())
        guard places > 0 else { return "\(scaled)" }
        let fraction = "\(scaled % scale)"
        return "\(scaled / scale).\(String(repeating: "0", count: places - fraction.count))\(fraction)"
    }

    private static func size(of unit: Int) -> Double {
        Double(Int64(1) << (10 * unit))
    }
}
