#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The terminal on a descriptor: its size, asked anew each time for people pull at windows, and what it can show.
struct Terminal: Sendable {
    /// Columns and rows.
    struct Size: Hashable {
        var columns: Int
        var rows: Int
    }

    let descriptor: CInt
    /// Whether it reads UTF-8, as the locale says.
    let isUTF8: Bool
    /// Whether it shows colours, and its user wants them.
    let hasColors: Bool

    /// What a terminal that does not say is taken for.
    static let standard = Size(columns: 80, rows: 24)

    /// Absent unless the descriptor is a terminal that can redraw a line.
    init?(of descriptor: CInt) {
        guard isatty(descriptor) == 1 else { return nil }
        if let name = getenv("TERM"), String(cString: name) == "dumb" { return nil }
        self.init(assuming: descriptor)
    }

    /// Whatever the descriptor is; of ``standard`` size if that is no terminal.
    init(assuming descriptor: CInt) {
        self.descriptor = descriptor
        self.isUTF8 = Self.isUTF8(["LC_ALL", "LC_CTYPE", "LANG"].map { Self.variable($0) })
        self.hasColors =
            isatty(descriptor) == 1
            && Self.hasColors(name: Self.variable("TERM"), noColor: Self.variable("NO_COLOR"))
    }

    /// - Parameter locales: the variables that name one, the first that is not empty wins (POSIX).
    static func isUTF8(_ locales: [String?]) -> Bool {
        let name = locales.lazy.compactMap { $0 }.first { !$0.isEmpty } ?? "C"
        let codeset = name.lowercased().filter { $0 != "-" }
        return codeset.contains(".utf8")
    }

    /// - Parameters:
    ///   - name: what the terminal is called. DEC's and those called monochrome have no colours, as terminfo has it.
    ///   - noColor: unless it is empty, none are wanted (no-color.org).
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

    /// The line as the terminal can show it: what is not ASCII takes as many columns, and is told by a mark.
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
