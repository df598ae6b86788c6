import SegmentedDownloadCore

/// An accepted date exists, prints as IMF-fixdate to exactly itself, and agrees with another calculation of the
/// calendar.
enum HTTPDateProperties {
    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    static func check(_ bytes: [UInt8]) throws(Violation) {
        if let date = HTTPDate(fieldValue: String(decoding: bytes, as: UTF8.self)) {
            try Self.check(date)
        }
        // Any eight bytes are a time too, mostly outside the calendar.
        var program = ByteProgram(bytes)
        let seconds = Int64(bitPattern: program.integer()) >> Int64(program.byte() & 31)
        if let date = HTTPDate(secondsSinceEpoch: seconds) {
            try require(date.secondsSinceEpoch == seconds, "\(seconds) became \(date.secondsSinceEpoch)")
            try Self.check(date)
        } else {
            try require(!(-62_167_219_200...253_402_300_799).contains(seconds), "\(seconds) has a year of four digits")
        }
    }

    private static func check(_ date: HTTPDate) throws(Violation) {
        let text = date.fieldValue
        try require(HTTPDate(fieldValue: text) == date, "\(date.secondsSinceEpoch) prints as \(text)")
        let bytes = Array(text.utf8)
        try require(bytes.count == 29, "\(text) is not an IMF-fixdate")
        func number(_ range: Range<Int>) -> Int { Int(Reference.number(bytes[range]) ?? -1) }
        let name = String(decoding: bytes[8..<11], as: UTF8.self)
        guard let month = Self.months.firstIndex(of: name) else {
            throw Violation(description: "\(name) is not a month")
        }
        let days = Reference.days(year: number(12..<16), month: month + 1, day: number(5..<7))
        let seconds = days * 86_400 + number(17..<19) * 3_600 + number(20..<22) * 60 + number(23..<25)
        try require(Int64(seconds) == date.secondsSinceEpoch, "\(text) is \(seconds), not \(date.secondsSinceEpoch)")
        let weekday = Self.weekdays[((days + 4) % 7 + 7) % 7]
        try require(text.hasPrefix(weekday), "\(text) is a \(weekday)")
    }
}
