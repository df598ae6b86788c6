import SegmentedDownloadCore

/// The ranges of a control file are ordered, disjoint and within the file, and no byte is both missing and present.
enum ControlFileProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        for program in ControlFile.Program.allCases {
            guard let control = ControlFile(program, bytes) else { continue }
            try Self.check(control)
            // Both formats state how long they are.
            try require(ControlFile(program, bytes + [0]) == nil, "a byte more is accepted")
            try require(ControlFile(program, bytes.dropLast()) == nil, "a byte less is accepted")
        }
    }

    private static func check(_ control: ControlFile) throws(Violation) {
        var end: Int64 = -1
        for range in control.missing {
            try require(range.lowerBound > end && !range.isEmpty, "\(control.missing) is not ordered or not merged")
            end = range.upperBound
        }
        if let length = control.completeLength {
            try require(length > 0 && end <= length, "\(control.missing) exceeds \(length) bytes")
        }
        let length = control.completeLength ?? 1 << 40
        var covered: Int64 = 0
        for range in control.present(in: length) {
            try require(range.lowerBound >= 0 && range.upperBound <= length, "\(range) exceeds \(length) bytes")
            try require(!control.missing.contains { $0.overlaps(range) }, "\(range) is missing and present")
            covered += range.upperBound - range.lowerBound
        }
        for range in control.missing {
            covered += max(min(range.upperBound, length) - range.lowerBound, 0)
        }
        try require(covered == length, "\(covered) of \(length) bytes are missing or present")
    }
}
