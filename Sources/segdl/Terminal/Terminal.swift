#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The terminal on a descriptor: its current size and its capabilities.
struct Terminal: Sendable {
    /// Columns and rows.
    struct Size: Hashable {
        var columns: Int
        var rows: Int
    }

    let descriptor: CInt
    /// Whether the locale's codeset is UTF-8.
    let isUTF8: Bool
    /// Whether the terminal shows colours and `NO_COLOR` is not set.
    let hasColors: Bool

    /// The assumed size if the system does not report one.
    static let standard = Size(columns: 80, rows: 24)

    /// Nil unless the descriptor is a terminal that can redraw a line.
    init?(of descriptor: CInt) {
        guard isatty(descriptor) == 1 else { return nil }
        if let name = getenv("TERM"), String(cString: name) == "dumb" { return nil }
        self.init(assuming: descriptor)
    }

    init(descriptor: CInt, isUTF8: Bool, hasColors: Bool) {
        self.descriptor = descriptor
        self.isUTF8 = isUTF8
        self.hasColors = hasColors
    }

    /// Accepts any descriptor. The size is ``standard`` if it is not a terminal.
    init(assuming descriptor: CInt) {
        self.init(
            descriptor: descriptor, isUTF8: Self.isUTF8(["LC_ALL", "LC_CTYPE", "LANG"].map { Self.variable($0) }),
            hasColors: isatty(descriptor) == 1
                && Self.hasColors(name: Self.variable("TERM"), noColor: Self.variable("NO_COLOR")))
    }

    /// - Parameter locales: The values of the locale variables. The first that is not empty counts (POSIX).
    static func isUTF8(_ locales: [String?]) -> Bool {
        let name = locales.lazy.compactMap { $0 }.first { !$0.isEmpty } ?? "C"
        let codeset = name.lowercased().filter { $0 != "-" }
        return codeset.contains(".utf8")
    }

    /// - Parameters:
    ///   - name: The value of `TERM`. DEC's terminals and those named monochrome have no colours in terminfo.
    ///   - noColor: The value of `NO_COLOR`. Any text disables colours (no-color.org).
    static func hasColors(name: String?, noColor: String?) -> Bool {
        guard let name, !name.isEmpty, noColor?.isEmpty ?? true else { return false }
        let isDEC = name.hasPrefix("vt") && name.dropFirst(2).first?.isNumber == true
        return !isDEC && !["dumb", "unknown"].contains(name) && !name.hasSuffix("-m") && !name.hasSuffix("-mono")
    }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    var size: Size {
        var size = winsize()
        guard ioctl(self.descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return Self.standard }
        return Size(columns: Int(size.ws_col), rows: size.ws_row > 0 ? Int(size.ws_row) : Self.standard.rows)
    }

    /// The columns of a message that is to fit into one line. The last column stays free, because some terminals wrap as
    /// soon as it is written, and others clear it with the rest of the line.
    var messageWidth: Int { max(self.size.columns - 1, 1) }

    /// The line as the terminal can show it: without UTF-8, other characters are replaced by marks of the same width.
    func rendered(_ line: String) -> String {
        guard !self.isUTF8 else { return line }
        var ascii = ""
        for scalar in line.unicodeScalars {
            if scalar.isASCII {
                ascii.unicodeScalars.append(scalar)
            } else {
                ascii += String(repeating: scalar == "…" ? "~" : "?", count: String(scalar).columns)
            }
        }
        return ascii
    }
}
