import SegmentedDownloadCore

/// A well-formed name is read unchanged; of equal parameters the first counts; order does not matter.
enum ContentDispositionProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let text = String(decoding: bytes, as: UTF8.self)
        try Self.check(field: text)
        try Self.check(name: text)
    }

    private static func check(field: String) throws(Violation) {
        let read = ContentDisposition(fieldValue: field)
        let once = ContentDisposition(fieldValue: "\(field);filename=a")
        try require(
            ContentDisposition(fieldValue: "\(field);filename=a;filename=b") == once,
            "\(field.debugDescription) is named by the second of two equal parameters")
        // Too many parameters are not read.
        guard field.utf8.count(where: { $0 == 0x3B }) < 30 else { return }
        if !Reference.lowercased(Array(field.utf8)[...]).contains(0x2A) {
            try require(
                ContentDisposition(fieldValue: "\(field); FileName*=utf-8'en'%41").filename == "A",
                "an extended name does not take precedence in \(field.debugDescription)")
        }
        try require(
            ContentDisposition(fieldValue: "\(field) ; undelivered-of=1") == read,
            "\(field.debugDescription) depends on an unrelated parameter")
    }

    private static func check(name: String) throws(Violation) {
        let isQuotable = name.unicodeScalars.allSatisfy { $0 == "\t" || ($0.value >= 0x20 && $0.value != 0x7F) }
        if isQuotable {
            let quoted = name.utf8.reduce(into: [UInt8]()) { quoted, byte in
                if byte == 0x22 || byte == 0x5C { quoted.append(0x5C) }
                quoted.append(byte)
            }
            let field = "attachment; filename=\"\(String(decoding: quoted, as: UTF8.self))\""
            let read = ContentDisposition(fieldValue: field).filename
            try require(read?.utf8.elementsEqual(name.utf8) == true, "\(field.debugDescription) names \(read ?? "-")")
        }
        let digits = Array("0123456789ABCDEF".utf8)
        var encoded: [UInt8] = []
        for byte in name.utf8 {
            encoded += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        let field = "attachment;filename=x;filename*=UTF-8''\(String(decoding: encoded, as: UTF8.self))"
        let read = ContentDisposition(fieldValue: field).filename
        // An empty name is none.
        let expected = name.isEmpty ? "x" : name
        try require(read?.utf8.elementsEqual(expected.utf8) == true, "\(field) names \(read ?? "-")")
    }
}
