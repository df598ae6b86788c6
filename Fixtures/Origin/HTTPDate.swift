/// A time in HTTP's format: `Tue, 14 Nov 2023 22:13:20 GMT` (RFC 9110 §5.6.7).
struct HTTPDate: CustomStringConvertible {
    let description: String

    init(unixSeconds: Int64) {
        // Days are counted from 1 March of the year 0, so that leap days end a year (Hinnant's `civil_from_days`).
        let (days, second) = Self.divide(unixSeconds, by: 86_400)
        let (era, dayOfEra) = Self.divide(days + 719_468, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shifted + 2) / 5 + 1
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        let year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)

        let weekday = Self.weekdays[Int(Self.divide(days + 4, by: 7).remainder)]
        let clock = [second / 3600, second / 60 % 60, second % 60].map { Self.padded($0, to: 2) }.joined(separator: ":")
        self.description =
            "\(weekday), \(Self.padded(day, to: 2)) \(Self.months[Int(month - 1)]) \(Self.padded(year, to: 4)) \(clock) GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Division that rounds down, so that it is correct for times before 1970.
    private static func divide(_ value: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    private static func padded(_ value: Int64, to width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
