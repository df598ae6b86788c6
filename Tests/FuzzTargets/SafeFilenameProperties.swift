import SegmentedDownloadCore

/// An accepted name stays in its directory, leaves room for segdl's suffixes, hides nothing and is not one of segdl's
/// names.
enum SafeFilenameProperties {
    /// The first byte selects where the name comes from; for the last choice the rest is three lines.
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
        switch (bytes.first ?? 0) % 3 {
        case 0:
            let name = SafeFilename(untrusted: text)
            if let name { try Self.check(name) }
            let component =
                text.utf8.split(omittingEmptySubsequences: false) { $0 == 0x2F || $0 == 0x5C }.last ?? ""[...].utf8
            let isSeen = Substring(component).unicodeScalars.contains { !Reference.isBlank($0) && Reference.isSeen($0) }
            try require(isSeen || name == nil, "\(text.debugDescription) has no visible character and is a name")
        case 1:
            if let name = SafeFilename.fromURLPath(text) { try Self.check(name) }
        default:
            var lines = Reference.split(text.utf8, at: "\n").map { String(decoding: $0, as: UTF8.self) }
            while lines.count < 3 { lines.append("") }
            try Self.check(SafeFilename.choose(contentDisposition: lines[0], urlPath: lines[1], host: lines[2]))
        }
    }

    private static func check(_ name: SafeFilename) throws(Violation) {
        let text = name.value
        // 255 bytes is the limit of file systems; 15 are for `.segdl-part` and a temporary suffix after it.
        try require((1...240).contains(text.utf8.count), "\(text.debugDescription) has \(text.utf8.count) bytes")
        try require(
            text.utf8.allSatisfy { $0 != 0x2F && $0 != 0x5C && $0 != 0 },
            "\(text.debugDescription) has several components")
        try require(
            text.unicodeScalars.allSatisfy { Reference.isShowable($0) }, "\(text.debugDescription) hides something")
        try require(
            !".-~".utf8.contains(text.utf8.first ?? 0),
            "\(text.debugDescription) is hidden, an option or a home directory")
        for (scalar, place) in [(text.unicodeScalars.first, "begins with"), (text.unicodeScalars.last, "ends in")] {
            let isBlank = scalar.map { Reference.isBlank($0) } ?? true
            try require(!isBlank, "\(text.debugDescription) \(place) a space")
        }
        let lowercased = Reference.lowercased(text.utf8)
        for suffix in [".segdl", ".segdl-part", ".segdl-new", ".segdl-old"] {
            try require(
                !lowercased.reversed().starts(with: suffix.utf8.reversed()),
                "\(text.debugDescription) is one of segdl's names")
        }
        try require(
            SafeFilename(untrusted: text) == name, "\(text.debugDescription) changes when it is made safe again")
    }
}
