/// A file name derived from an untrusted suggestion that is safe to create, to print and to pass to commands.
///
/// It is a single path component and fits on disk together with segdl's suffixes. It is not a hidden file, does not
/// look like an option or a home directory, does not end in one of segdl's suffixes, and contains no control or
/// invisible characters.
package struct SafeFilename: Hashable, Sendable, CustomStringConvertible {
    package let value: String
    package var description: String { self.value }

    /// 240 bytes of UTF-8: 255, the limit of Linux, APFS and most other file systems, minus 11 for `.segdl-part` and 4
    /// for a temporary suffix.
    package static let lengthMax = 240

    /// Makes the last component after `/` and `\` safe. Nil if nothing in it is visible, or if it is `.` or `..`.
    ///
    /// - Whitespace at both ends is removed.
    /// - Control, bidirectional and invisible characters become `_`.
    /// - A leading `.` is prefixed with `_`; a leading `-` or `~` is replaced by `_`.
    /// - A name that ends in one of segdl's suffixes gets a trailing `_`.
    /// - A long name is shortened.
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
    /// The name in the last component of a URL's path, decoded once. Escapes that are not UTF-8 stay encoded.
    package static func fromURLPath(_ percentEncodedPath: String) -> SafeFilename? {
        let path = percentEncodedPath.utf8
        let separator = path.lastIndex(of: UInt8(ascii: "/"))
        let start = separator.map { path.index(after: $0) } ?? path.startIndex
        return SafeFilename(untrusted: PercentEncoding.decode(path[start...]))
    }

    /// The default name of a download: from `Content-Disposition`, else from the URL's path, else the host, else
    /// `download`.
    package static func choose(contentDisposition: String?, urlPath: String, host: String) -> SafeFilename {
        contentDisposition
            .flatMap { ContentDisposition(fieldValue: $0).filename }
            .flatMap { SafeFilename(untrusted: $0) }
            ?? Self.fromURLPath(urlPath)
            ?? SafeFilename(untrusted: host)
            ?? SafeFilename(constant: "download")
    }
}

extension SafeFilename {
    /// The suffixes of segdl's own files. Without this check a server could suggest the name of another download's
    /// files.
    private static let reservedSuffixes = [".segdl", ".segdl-part", ".segdl-new", ".segdl-old"]

    /// 16 bytes including dots: enough for `.tar.gz` and `.flatpakref`. A longer suffix is probably part of a sentence.
    private static let extensionLengthMax = 16

    /// Ignores ASCII case, because some file systems do.
    private static func isOurs(_ name: String) -> Bool {
        let name = name.utf8.map { $0.asciiLowercased }
        return Self.reservedSuffixes.contains { name.reversed().starts(with: $0.utf8.reversed()) }
    }

    /// Shortens a name longer than ``lengthMax`` to its beginning, `~`, a hash of the whole name, and its extension.
    ///
    /// The hash distinguishes long names that differ only in the part that is cut. The cut is between Unicode scalars.
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

    /// The last one or two extensions without spaces, such as `.pdf` and `.tar.gz`, up to ``extensionLengthMax`` bytes.
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

    /// 64-bit FNV-1a, folded to 32 bits as its authors recommend, as eight hexadecimal digits.
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
    /// Whether it is whitespace, or the empty Braille pattern, which looks like a space.
    fileprivate var isBlank: Bool { self.properties.isWhitespace || self.value == 0x2800 }

    /// Whether it is a control or format character, or ignorable by default.
    fileprivate var isInvisible: Bool {
        switch self.properties.generalCategory {
        case .control, .format: true
        default: self.properties.isDefaultIgnorableCodePoint
        }
    }
}
