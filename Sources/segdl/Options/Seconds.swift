import ArgumentParser

/// A duration: as an argument such as `30`, `1.5s`, `250ms` or `2m`, and as text for messages.
struct Seconds: Hashable, ExpressibleByArgument {
    let duration: Duration

    init(_ duration: Duration) {
        self.duration = duration
    }

    private static let units: [(suffix: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000),
    ]

    /// Digits with an optional fraction and one of `ms s m h`; seconds if there is no unit.
    init?(argument: String) {
        let text = argument.lowercased()
        let unit = Self.units.first { text.hasSuffix($0.suffix) } ?? ("", 1000)
        guard let number = DecimalNumber(text.dropLast(unit.suffix.utf8.count)),
            let milliseconds = number.scaled(by: unit.milliseconds),
            // A year: more is probably a mistake, and a deadline cannot overflow.
            milliseconds > 0, milliseconds <= 365 * 86_400_000
        else { return nil }
        self.duration = .milliseconds(milliseconds)
    }

    /// The form of an argument: `720h`, `30s`.
    var defaultValueDescription: String {
        let milliseconds = Int64((self.value * 1000).rounded())
        let unit = Self.units.last { milliseconds.isMultiple(of: $0.milliseconds) } ?? Self.units[0]
        return "\(milliseconds / unit.milliseconds)\(unit.suffix)"
    }
}

extension Seconds: CustomStringConvertible {
    /// `0.7 s`, `42 s`, `3 min 20 s`, `1 h 02 min`.
    var description: String {
        let tenths = Int64((self.value * 10).rounded())
        if tenths < 100 { return "\(tenths / 10).\(tenths % 10) s" }
        let seconds = Int64(self.value.rounded())
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
        return "\(seconds / 3600) h \(Self.padded(seconds / 60 % 60)) min"
    }

    /// `0:42`, `1h02m` or, from 100 hours, `4d`, rounded up: short and of nearly the same width.
    var clock: String {
        let seconds = Int64(self.value.rounded(.up))
        if seconds >= 100 * 3600 { return seconds < 1000 * 86_400 ? "\(seconds / 86_400)d" : "long" }
        if seconds < 3600 { return "\(seconds / 60):\(Self.padded(seconds % 60))" }
        return "\(seconds / 3600)h\(Self.padded(seconds / 60 % 60))m"
    }

    /// In seconds, at most 10¹⁵, so that conversions to `Int64` cannot overflow.
    var value: Double {
        min(self.duration / .seconds(1), 1e15)
    }

    /// In seconds, rounded to milliseconds.
    var rounded: Double {
        (self.value * 1000).rounded() / 1000
    }

    private static func padded(_ number: Int64) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}
