import SegmentedDownloadCore

/// Three lines: the field, the response's date and the local time. The result is a number, or the distance to a date.
enum RetryAfterProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let lines = Reference.split(bytes, at: "\n").map { String(decoding: $0, as: UTF8.self) }
        let date = lines.count > 1 ? HTTPDate(fieldValue: lines[1]) : nil
        let now = lines.count > 2 ? HTTPDate(fieldValue: lines[2]) : nil
        let read = RetryAfter(fieldValue: lines[0], date: date, fallbackNow: now)?.seconds
        try require((0...RetryAfter.secondsMax).contains(read ?? 0), "\(read ?? 0) s is negative or not limited")

        let expected: Int64?
        if Reference.isDigits(lines[0].utf8) {
            expected = min(Reference.number(lines[0].utf8) ?? .max, RetryAfter.secondsMax)
        } else if let until = HTTPDate(fieldValue: lines[0]), let now = date ?? now {
            expected = min(max(until.secondsSinceEpoch - now.secondsSinceEpoch, 0), RetryAfter.secondsMax)
        } else {
            expected = nil
        }
        try require(read == expected, "\(lines) was read as \(read ?? -1) instead of \(expected ?? -1)")
    }
}
