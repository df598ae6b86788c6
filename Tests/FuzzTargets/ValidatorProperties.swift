import SegmentedDownloadCore

/// Four lines: an entity tag and a date as recorded, then as they came. Nothing counts as the same that is not.
enum ValidatorProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        var lines = Reference.split(bytes, at: "\n").map { String(decoding: $0, as: UTF8.self) }
        while lines.count < 4 { lines.append("") }
        try Self.check(tag: lines[0])
        let recorded = Self.validator(lines[0], lines[1])
        let current = Self.validator(lines[2], lines[3])

        let expected = Self.expected(
            (Reference.entityTag(lines[0]), recorded.lastModified),
            (Reference.entityTag(lines[2]), current.lastModified))
        let found = recorded.compare(with: current)
        try require(found == expected, "\(lines) compared as \(found) instead of \(expected)")

        try require(recorded.compare(with: recorded) != .changed, "\(recorded) differs from itself")
        try require(recorded.isStrong == (recorded.ifRangeFieldValue != nil), "\(recorded) is sent although weak")
        if recorded.isStrong {
            try require(recorded.ifRangeFieldValue == lines[0], "\(lines[0]) is sent as another tag")
        }
        try require(
            "\(recorded)".unicodeScalars.allSatisfy { Reference.isShowable($0) }, "\(recorded) is not for people")
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
        Validator(entityTag: EntityTag(fieldValue: tag), lastModified: HTTPDate(fieldValue: date))
    }

    /// "Strong ETag byte by byte; else Last-Modified; missing where it was there before is a mismatch."
    static func expected(
        _ recorded: (tag: Reference.Tag?, date: HTTPDate?), _ current: (tag: Reference.Tag?, date: HTTPDate?)
    ) -> Validator.Comparison {
        if let tag = recorded.tag {
            if current.tag != tag { return .changed }
            if !tag.isWeak { return .same(.etag) }
        }
        if recorded.tag == nil, recorded.date == nil, current.tag != nil || current.date != nil { return .changed }
        guard let date = recorded.date else { return .unproven }
        return current.date == date ? .same(.lastModified) : .changed
    }
}
