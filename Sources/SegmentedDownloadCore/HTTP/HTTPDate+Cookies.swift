extension HTTPDate {
    /// Reads the date of a cookie as RFC 6265 §5.1.1 says: the first parts that look like a time, a day, a month and a year, in any
    /// order, whatever else there is. Nil if one of them is missing, or if the date does not exist.
    package init?(cookieDate text: String) {
        var time: CivilTime.TimeOfDay?
        var day: Int64?
        var month: Int64?
        var year: Int64?
        for token in text.utf8.split(whereSeparator: \.isCookieDateDelimiter) {
            if time == nil, let found = Self.timeOfDay(token) {
                time = found
            } else if day == nil, let found = Self.number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = Self.months.firstIndex(of: token.prefix(3).map(\.asciiLowercased)) {
                month = Int64(found) + 1
            } else if year == nil, let found = Self.number(token, digits: 2...4) {
                year = found
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if 70...99 ~= year { year += 1900 }
        if 0...69 ~= year { year += 2000 }
        guard year >= 1601, time.second < 60, let civil = CivilTime(year: year, month: month, day: day, time: time)
        else { return nil }
        self.init(secondsSinceEpoch: civil.secondsSinceEpoch)
    }

    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        .map { Array($0.utf8) }

    /// `hh:mm:ss` with one or two digits each, perhaps followed by something that does not begin with a digit.
    private static func timeOfDay(_ token: Substring.UTF8View) -> CivilTime.TimeOfDay? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts.dropLast().allSatisfy({ $0.allSatisfy(\.isASCIIDigit) }),
            let hour = Self.number(parts[0], digits: 1...2), let minute = Self.number(parts[1], digits: 1...2),
            let second = Self.number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    /// The number at the beginning, if it has so many digits.
    private static func number(_ token: Substring.UTF8View, digits: ClosedRange<Int>) -> Int64? {
        let run = token.prefix(while: \.isASCIIDigit)
        return digits.contains(run.count) ? DecimalDigits(run)?.exact : nil
    }
}

extension UInt8 {
    fileprivate var isCookieDateDelimiter: Bool {
        self == 0x09 || 0x20...0x2F ~= self || 0x3B...0x40 ~= self || 0x5B...0x60 ~= self || 0x7B...0x7E ~= self
    }
}
