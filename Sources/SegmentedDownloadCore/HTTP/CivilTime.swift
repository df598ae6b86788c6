/// A date and time of day in the Gregorian calendar, in UTC, within the years 0000 to 9999.
///
/// Days are counted with Howard Hinnant's algorithm. Its years begin in March, so the leap day is the last day of a
/// year, and it groups 400 years into an era, which always has the same number of days.
struct CivilTime: Hashable {
    typealias TimeOfDay = (hour: Int64, minute: Int64, second: Int64)

    let year: Int64
    /// 1 to 12.
    let month: Int64
    /// 1 to 31.
    let day: Int64
    let hour: Int64
    let minute: Int64
    /// 0 to 60. The leap second is accepted only as 23:59:60 and counts as the second after it.
    let second: Int64

    /// From 0000-01-01 00:00:00 to 9999-12-31 23:59:59.
    static let secondsSinceEpochRange: ClosedRange<Int64> = -62_167_219_200...253_402_300_799

    private static let secondsPerDay: Int64 = 86_400
    private static let daysPerEra: Int64 = 146_097
    /// The days from 0000-03-01, where era zero begins, to 1970-01-01.
    private static let daysBeforeEpoch: Int64 = 719_468

    /// Nil if the date or the time of day does not exist.
    init?(year: Int64, month: Int64, day: Int64, time: TimeOfDay) {
        let isLeapSecond = time == (23, 59, 60)
        guard
            0...9999 ~= year, 1...12 ~= month, 1...Self.lastDay(ofMonth: month, year: year) ~= day,
            isLeapSecond || (0...23 ~= time.hour && 0...59 ~= time.minute && 0...59 ~= time.second)
        else { return nil }
        self.year = year
        self.month = month
        self.day = day
        (self.hour, self.minute, self.second) = time
    }

    /// The moment `secondsSinceEpoch` seconds after 1970-01-01, clamped to ``secondsSinceEpochRange``.
    init(secondsSinceEpoch: Int64) {
        let range = Self.secondsSinceEpochRange
        let seconds = min(max(secondsSinceEpoch, range.lowerBound), range.upperBound)
        let days = Self.floorDivide(seconds, by: Self.secondsPerDay)
        let secondOfDay = seconds - days * Self.secondsPerDay

        let marchDays = days + Self.daysBeforeEpoch
        let era = Self.floorDivide(marchDays, by: Self.daysPerEra)
        let dayOfEra = marchDays - era * Self.daysPerEra
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153

        self.month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        self.year = era * 400 + yearOfEra + (self.month <= 2 ? 1 : 0)
        self.day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        self.hour = secondOfDay / 3_600
        self.minute = secondOfDay / 60 % 60
        self.second = secondOfDay % 60
    }

    var secondsSinceEpoch: Int64 {
        let seconds =
            self.daysSinceEpoch * Self.secondsPerDay + self.hour * 3_600 + self.minute * 60 + self.second
        return min(seconds, Self.secondsSinceEpochRange.upperBound)  // Clamps the leap second at the end of 9999.
    }

    /// 0 for Sunday to 6 for Saturday.
    var weekday: Int {
        let thursday: Int64 = 4  // 1970-01-01 was a Thursday.
        let days = self.daysSinceEpoch + thursday
        return Int(days - Self.floorDivide(days, by: 7) * 7)
    }

    private var daysSinceEpoch: Int64 {
        let marchYear = self.month <= 2 ? self.year - 1 : self.year
        let era = Self.floorDivide(marchYear, by: 400)
        let yearOfEra = marchYear - era * 400
        let marchMonth = self.month > 2 ? self.month - 3 : self.month + 9
        let dayOfYear = (153 * marchMonth + 2) / 5 + self.day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * Self.daysPerEra + dayOfEra - Self.daysBeforeEpoch
    }

    private static func lastDay(ofMonth month: Int64, year: Int64) -> Int64 {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
