/// A file name made from what a server or a URL suggests, that stays in its directory and deceives nobody.
///
/// It is one path component that fits on disk with our suffixes, is no hidden file, no option of a command, no home
/// directory and none of our own files, and holds no character that a terminal obeys or a reader cannot see.
package struct SafeFilename: Hashable, Sendable, CustomStringConvertible {
    package let value: String
    package var description: String { self.value }

    /// In bytes of UTF-8: 255, which Linux, APFS and most others allow, less 11 for `.segdl-part`, less 4 for a
    /// temporary suffix behind that.
    package static let lengthMax = 240

    /// The last component after `/` and `\`, made safe; nil where nothing of it is to be seen, or it is `.` or `..`.
    ///
    /// Spaces of all kinds at both ends go; control, bidirectional and invisible characters become `_`; a leading `.` gets a `_`
    /// before it; a leading `-` or `~` is replaced by `_`; a name like one of our own files gets a `_` behind it; a long name is
    /// cut.
    package init?(untrusted: String) {
        let scalars = untrusted.unicodeScalars
        let separator = scalars.lastIndex { $0 == "/" || $0 == "\\" }
        let start = separator.map { scalars.index(after: $0) } ?? scalars.startIndex
        let component = scalars[start...]
        guard component.contains(where: { !$0.isBlank && !$0.isInvisible }),
            let last = component.lastIndex(where: { !$0.isBlank })
        else { return nil }
        let trimmed = component[...last].drop { $0.isBlank }
        var name = String.UnicodeScalarView(trimmed.map { $0.isPrintable ? $0 : "_" })

        guard let first = name.first, String(name) != ".", String(name) != ".." else { return nil }
        if first == "." {
            name.insert("_", at: name.startIndex)
        } else if first == "-" || first == "~" {
            name.removeFirst()
            name.insert("_", at: name.startIndex)
        }
        if Self.isOurs(String(name)) {
            name.append("_")
        }
        self.value = Self.cut(String(name))
    }

    private init(constant value: String) {
        self.value = value
    }
}

extension SafeFilename {
    /// The name in the last component of a URL's path, decoded once; escapes that are not UTF-8 stay as they are
    /// spelled.
    package static func fromURLPath(_ percentEncodedPath: String) -> SafeFilename? {
        let path = percentEncodedPath.utf8
        let separator = path.lastIndex(of: UInt8(ascii: "/"))
        let start = separator.map { path.index(after: $0) } ?? path.startIndex
        return SafeFilename(untrusted: PercentEncoding.decode(path[start...]))
    }

    /// The name to give to a download that nobody named: the server's, else the URL's, else the host's, else
    /// `download`.
    package static func choose(contentDisposition: String?, urlPath: String, host: String) -> SafeFilename {
        contentDisposition
            .flatMap { ContentDisposition(fieldValue: $0)?.filename }
            .flatMap { SafeFilename(untrusted: $0) }
            ?? Self.fromURLPath(urlPath)
            ?? SafeFilename(untrusted: host)
            ?? SafeFilename(constant: "download")
    }
}

extension SafeFilename {
    /// The suffixes of manifest and part. A server must not suggest the name of another download's.
    private static let reservedSuffixes = [".segdl", ".segdl-part", ".segdl-new"]

    /// In bytes with its dots: room for `.tar.gz` and `.flatpakref`; what is longer is rather a sentence with a dot in
    /// it.
    private static let extensionLengthMax = 16

    /// Cased or not, because some file systems do not care.
    private static func isOurs(_ name: String) -> Bool {
        let name = name.utf8.map { $0.asciiLowercased }
        return Self.reservedSuffixes.contains { name.reversed().starts(with: $0.utf8.reversed()) }
    }

    /// A name longer than ``lengthMax`` as its beginning, `~`, a hash of all of it, and its extension.
    ///
    /// The hash keeps apart long names that differ in the middle. Cuts are between Unicode scalars.
    private static func cut(_ name: String) -> String {
        guard name.utf8.count > Self.lengthMax else { return name }
        let pathExtension = Self.pathExtension(of: name)
        let ending = "~\(Self.hash(name))\(pathExtension)"
        let lengthMax = Self.lengthMax - ending.utf8.count

        var beginning = String.UnicodeScalarView()
        var length = 0
        for scalar in name.unicodeScalars {
            length += scalar.utf8.count
            guard length <= lengthMax else { break }
            beginning.append(scalar)
        }
        return String(beginning) + ending
    }

    /// The last one or two pieces that start with a dot and hold no space, such as `.pdf` and `.tar.gz`.
    private static func pathExtension(of name: String) -> String {
        var found = name.utf8[name.utf8.endIndex...]
        for _ in 0..<2 {
            let before = name.utf8[..<found.startIndex]
            guard let dot = before.lastIndex(of: UInt8(ascii: ".")) else { break }
            let piece = before[dot...]
            let candidate = name.utf8[dot...]
            guard
                piece.count > 1, candidate.count <= Self.extensionLengthMax, !piece.contains(UInt8(ascii: " "))
            else { break }
            found = candidate
        }
        return String(Substring(found))
    }

    /// FNV-1a with 64 bits, folded to 32 as its authors advise, in eight hexadecimal digits.
    private static func hash(_ name: String) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name.utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        let digits = String(UInt32(truncatingIfNeeded: hash ^ hash >> 32), radix: 16)
        return String(repeating: "0", count: max(0, 8 - digits.utf8.count)) + digits
    }
}

extension Unicode.Scalar {
    /// Whether it is a space of some kind. The empty pattern of Braille is drawn as one.
    fileprivate var isBlank: Bool { self.properties.isWhitespace || self.value == 0x2800 }

    /// Whether it is there for a program, and not to be seen.
    fileprivate var isInvisible: Bool {
        switch self.properties.generalCategory {
        case .control, .format: true
        default: self.properties.isDefaultIgnorableCodePoint
        }
    }
}
