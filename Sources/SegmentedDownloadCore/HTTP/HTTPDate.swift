/// A moment in HTTP's date format: UTC, with a resolution of one second (RFC 9110 §5.6.7).
///
/// Three forms are parsed: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and
/// `Sun Nov  6 08:49:37 1994`. Only the first is written. The date must exist in the calendar. The weekday must be a
/// valid name but is not checked against the date, because the century of a two-digit year is only assumed.
package struct HTTPDate: Hashable, Sendable {
    /// Seconds since 1970-01-01 00:00:00 UTC without leap seconds, always within the years 0000 to 9999.
    package let secondsSinceEpoch: Int64

    /// Nil outside the years 0000 to 9999, because the format has four digits for the year.
    package init?(secondsSinceEpoch: Int64) {
        guard CivilTime.secondsSinceEpochRange.contains(secondsSinceEpoch) else { return nil }
        self.secondsSinceEpoch = secondsSinceEpoch
    }

    package init?(fieldValue: String) {
        let time = CivilTime(imfFixdate: fieldValue) ?? CivilTime(rfc850: fieldValue) ?? CivilTime(asctime: fieldValue)
        guard let time else { return nil }
        self.init(secondsSinceEpoch: time.secondsSinceEpoch)
    }

    /// The date in IMF-fixdate form, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    package var fieldValue: String { CivilTime(secondsSinceEpoch: self.secondsSinceEpoch).imfFixdate }

    /// The number of seconds from `other` to this date, negative if this date is earlier.
    package func seconds(since other: HTTPDate) -> Int64 {
        self.secondsSinceEpoch - other.secondsSinceEpoch  // Cannot overflow: both are within ten thousand years.
    }
}

extension HTTPDate: Comparable {
    package static func < (left: HTTPDate, right: HTTPDate) -> Bool {
        left.secondsSinceEpoch < right.secondsSinceEpoch
    }
}

extension CivilTime {
    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let longWeekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Two-digit years below this are 20xx, the others 19xx.
    ///
    /// RFC 9110 places the year relative to the current time. A constant keeps parsing independent of the clock. It is
    /// 70 because no file on an origin is older than 1970, where the Unix clock begins.
    private static let twoDigitYearPivot: Int64 = 70

    /// The form of almost all dates: `#` for a letter of a name, `0` for a digit.
    private static let imfFixdatePattern = Array("###, 00 ### 0000 00:00:00 GMT".utf8)
    private static let weekdayCodes = Self.weekdays.map { Self.code(of: $0.utf8) }
    private static let monthCodes = Self.months.map { Self.code(of: $0.utf8) }

    private static func code(of name: some Sequence<UInt8>) -> UInt32 { name.reduce(0) { $0 << 8 | UInt32($1) } }

    /// Most responses have two of these dates, so they are read by position, which takes a tenth of the time that a
    /// ``FieldValueReader`` takes.
    fileprivate init?(imfFixdate text: String) {
        var text = text
        guard let time = text.withUTF8({ CivilTime(imfFixdate: $0) }) else { return nil }
        self = time
    }

    private init?(imfFixdate bytes: UnsafeBufferPointer<UInt8>) {
        guard bytes.count == Self.imfFixdatePattern.count else { return nil }
        for (byte, expected) in zip(bytes, Self.imfFixdatePattern) {
            switch expected {
            case UInt8(ascii: "#"): break
            case UInt8(ascii: "0"): guard byte.isASCIIDigit else { return nil }
            default: guard byte == expected else { return nil }
            }
        }
        guard Self.weekdayCodes.contains(Self.code(of: bytes[..<3])),
            let month = Self.monthCodes.firstIndex(of: Self.code(of: bytes[8..<11]))
        else { return nil }
        func number(_ range: Range<Int>) -> Int64 { bytes[range].reduce(0) { $0 * 10 + Int64($1 & 0x0F) } }
        self.init(
            year: number(12..<16), month: Int64(month) + 1, day: number(5..<7),
            time: (number(17..<19), number(20..<22), number(23..<25)))
    }

    fileprivate init?(rfc850 text: String) {
        var reader = FieldValueReader(text)
        guard
            reader.takeName(of: Self.longWeekdays) != nil, reader.skip(", "),
            let day = reader.takeNumber(digits: 2), reader.skip("-"),
            let month = reader.takeName(of: Self.months), reader.skip("-"),
            let shortYear = reader.takeNumber(digits: 2), reader.skip(" "),
            let time = reader.takeTimeOfDay(), reader.skip(" GMT"), reader.isAtEnd
        else { return nil }
        let year = shortYear + (shortYear < Self.twoDigitYearPivot ? 2000 : 1900)
        self.init(year: year, month: Int64(month) + 1, day: day, time: time)
    }

    fileprivate init?(asctime text: String) {
        var reader = FieldValueReader(text)
        guard
            reader.takeName(of: Self.weekdays) != nil, reader.skip(" "),
            let month = reader.takeName(of: Self.months), reader.skip(" "),
            let day = reader.takeNumber(digits: reader.skip(" ") ? 1 : 2), reader.skip(" "),
            let time = reader.takeTimeOfDay(), reader.skip(" "),
            let year = reader.takeNumber(digits: 4), reader.isAtEnd
        else { return nil }
        self.init(year: year, month: Int64(month) + 1, day: day, time: time)
    }

    fileprivate var imfFixdate: String {
        let weekday = Self.weekdays[self.weekday]
        let month = Self.months[Int(self.month) - 1]
        let date = "\(Self.padded(self.day, to: 2)) \(month) \(Self.padded(self.year, to: 4))"
        let time = [self.hour, self.minute, self.second].map { Self.padded($0, to: 2) }.joined(separator: ":")
        return "\(weekday), \(date) \(time) GMT"
    }

    private static func padded(_ number: Int64, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

extension FieldValueReader {
    fileprivate mutating func takeTimeOfDay() -> CivilTime.TimeOfDay? {
        guard
            let hour = self.takeNumber(digits: 2), self.skip(":"),
            let minute = self.takeNumber(digits: 2), self.skip(":"),
            let second = self.takeNumber(digits: 2)
        else { return nil }
        return (hour, minute, second)
    }
}
