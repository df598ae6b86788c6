import SegmentedDownloadCore

/// Four lines: an entity tag and a date as recorded, then as received. Only equal validators compare as equal.
enum ValidatorProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        var lines = Reference.split(bytes, at: "\n").map { String(decoding: $0, as: UTF8.self) }
        while lines.count < 4 { lines.append("") }
        try Self.check(tag: lines[0])
        let recorded = Self.validator(lines[0], lines[1])
        let current = Self.validator(lines[2], lines[3])

        let fields = lines.map { $0.isEmpty ? [] : [$0] }
        let expected = Self.expected((fields[0], fields[1]), (fields[2], fields[3]))
        let found = recorded.compare(with: current)
        try require(found == expected, "\(lines) compared as \(found) instead of \(expected)")

        try require(recorded.compare(with: recorded) != .changed, "\(recorded) differs from itself")
        try require(recorded.isStrong == (recorded.ifRangeFieldValue != nil), "\(recorded) is sent although weak")
        if recorded.isStrong {
            try require(recorded.ifRangeFieldValue == lines[0], "\(lines[0]) is sent as another tag")
        }
        let received = HTTPDate(secondsSinceEpoch: 0)
        let weak = Validator(tagFields: fields[0], dateFields: fields[1], sent: received)
        if weak.isDateWeak {
            try require(weak.compare(with: current) != .same(.lastModified), "\(lines): a weak date proves equality")
            try require((weak.compare(with: current) == .changed) == (expected == .changed), "\(lines) differ")
        }
        try require(
            "\(recorded)".unicodeScalars.allSatisfy { Reference.isShowable($0) }, "\(recorded) is not printable")
    }

    private static func check(tag field: String) throws(Violation) {
        guard let tag = EntityTag(fieldValue: field) else {
            try require(Reference.entityTag(field) == nil, "\(field.debugDescription) is well formed")
            return
        }
        let read = Reference.Tag(bytes: Array(tag.opaque.utf8), isWeak: tag.isWeak)
        try require(Reference.entityTag(field) == read, "\(field.debugDescription) was read as \(tag)")
        try require(tag.fieldValue.utf8.elementsEqual(field.utf8), "\(field.debugDescription) prints as another tag")
    }

    private static func validator(_ tag: String, _ date: String) -> Validator {
        Validator(tagFields: tag.isEmpty ? [] : [tag], dateFields: date.isEmpty ? [] : [date])
    }

    /// "Strong ETag byte by byte, which another date makes doubtful; else Last-Modified; missing where it was there before is a mismatch. One that does
    /// not parse proves nothing when equal, and change when different." Applied to the fields as received.
    static func expected(
        _ recorded: (tags: [String], dates: [String]), _ current: (tags: [String], dates: [String])
    ) -> Validator.Comparison {
        if recorded.tags.isEmpty, recorded.dates.isEmpty, !current.tags.isEmpty || !current.dates.isEmpty {
            return .changed
        }
        if !recorded.tags.isEmpty {
            guard let tag = Self.single(recorded.tags).flatMap({ Reference.entityTag($0) }) else {
                return Self.areEqual(recorded.tags, current.tags)
                    ? Self.expected(dates: recorded.dates, current.dates) : .changed
            }
            if Self.single(current.tags).flatMap({ Reference.entityTag($0) }) != tag { return .changed }
            if !tag.isWeak {
                let isDoubtful =
                    !recorded.dates.isEmpty && !current.dates.isEmpty
                    && Self.expected(dates: recorded.dates, current.dates) == .changed
                return isDoubtful ? .unproven : .same(.etag)
            }
        }
        return Self.expected(dates: recorded.dates, current.dates)
    }

    private static func expected(dates recorded: [String], _ current: [String]) -> Validator.Comparison {
        if recorded.isEmpty { return .unproven }
        guard let date = Self.single(recorded).flatMap({ HTTPDate(fieldValue: $0) }) else {
            return Self.areEqual(recorded, current) ? .unproven : .changed
        }
        return Self.single(current).flatMap { HTTPDate(fieldValue: $0) } == date ? .same(.lastModified) : .changed
    }

    private static func single(_ values: [String]) -> String? { values.count == 1 ? values[0] : nil }

    private static func areEqual(_ left: [String], _ right: [String]) -> Bool {
        left.map { Array($0.utf8) } == right.map { Array($0.utf8) }
    }
}
