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
    /// The number in the largest unit that fits, with one decimal place unless the unit is bytes.
    var description: String {
        let unit = self.unit
        return "\(self.amount(in: unit)) \(Self.units[unit])"
    }

    /// `3.1 of 4.0 GiB`: both numbers in the total's unit, unless the first would be shown as 0.0.
    func description(of total: ByteCount, separator: String = " of ") -> String {
        let unit = total.unit
        let done = self.amount(in: unit)
        let isLost = done == "0.0" && self.bytes > 0
        return "\(isLost ? self.description : done)\(separator)\(total)"
    }

    /// The exponent of 1024 that gives a number below 1024.
    private var unit: Int {
        var unit = 0
        // A number that would be rounded up to 1024.0 is shown as 1.0 in the next unit.
        while Double(self.bytes) / Self.size(of: unit) >= (unit == 0 ? 1024 : 1023.95), unit < Self.units.count - 1 {
            unit += 1
        }
        return unit
    }

    private func amount(in unit: Int) -> String {
        guard unit > 0 else { return "\(self.bytes)" }
        let tenths = Int64((Double(self.bytes) / Self.size(of: unit) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func size(of unit: Int) -> Double {
        Double(Int64(1) << (10 * unit))
    }
}
