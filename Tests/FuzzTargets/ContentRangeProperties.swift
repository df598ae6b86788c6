import SegmentedDownloadCore

/// A `Content-Range` means what its grammar says, other text is rejected, and the value prints back to itself.
enum ContentRangeProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let field = String(decoding: bytes, as: UTF8.self)
        switch ContentRange(fieldValue: field) {
        case .satisfied(let range, let total):
            let (first, last) = (range.lowerBound, range.upperBound - 1)
            try require(first >= 0 && first <= last, "\(range) is no range")
            try require(total.map { last < $0 } ?? true, "\(range) ends after \(total ?? 0)")
            let expected = Reference.Positions(first: first, last: last, total: total)
            try require(Reference.contentRange(field) == expected, "\(field.debugDescription) is not \(expected)")
            let again = ContentRange(fieldValue: "bytes \(first)-\(last)/\(total.map { "\($0)" } ?? "*")")
            try require(again == .satisfied(range, completeLength: total), "\(range) does not print back")
        case .unsatisfied(let total):
            try require(Reference.unsatisfiedLength(field) == total, "\(field.debugDescription) is not */\(total)")
            let again = ContentRange(fieldValue: "bytes */\(total)")
            try require(again == .unsatisfied(completeLength: total), "*/\(total) does not print back")
        case nil:
            try require(
                Reference.contentRange(field) == nil && Reference.unsatisfiedLength(field) == nil,
                "\(field.debugDescription) is well formed")
        }
    }
}
