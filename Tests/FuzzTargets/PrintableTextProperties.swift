import SegmentedDownloadCore

/// Displayed text contains no control or invisible characters and is no longer than requested; harmless text is
/// unchanged.
enum PrintableTextProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        var program = ByteProgram(bytes)
        let limit = Int(program.byte())
        let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
        for (shown, limit) in [(text.printable(limit: limit), limit), (text.printable, String.printableLengthMax)] {
            let scalars = shown.unicodeScalars
            try require(scalars.allSatisfy { Reference.isShowable($0) }, "\(shown.debugDescription) is shown")
            let isCut = scalars.count > limit
            try require(scalars.count <= limit + 1 && (!isCut || scalars.last == "…"), "\(scalars.count) of \(limit)")
            if text.unicodeScalars.count <= limit, text.unicodeScalars.allSatisfy({ Reference.isShowable($0) }) {
                try require(shown.utf8.elementsEqual(text.utf8), "\(text.debugDescription) was changed")
            }
        }
    }
}
