import SegmentedDownloadCore

/// The fields, one per line, agree on one number or on none.
enum ContentLengthProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let fields = bytes.isEmpty ? [] : Reference.split(bytes, at: "\n").map { String(decoding: $0, as: UTF8.self) }
        let read = ContentLength.parse(fields)
        let expected: ContentLength.Result =
            switch Reference.contentLength(fields) {
            case .absent: .absent
            case .exact(let length): .exact(length)
            case .malformed: .malformed
            }
        try require(read == expected, "\(fields) is \(expected) and was read as \(read)")
        if case .exact(let length) = read {
            try require(length >= 0, "a length of \(length)")
            try require(ContentLength.parse(fields + ["\(length)"]) == read, "a repeated field changes the length")
            if length < .max {
                try require(ContentLength.parse(fields + ["\(length + 1)"]) == .malformed, "two lengths are accepted")
            }
        }
    }
}
