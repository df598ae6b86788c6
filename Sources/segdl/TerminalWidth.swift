#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// How wide the terminal on a descriptor is, asked anew each time: people pull at windows.
struct TerminalWidth: Sendable {
    let descriptor: CInt

    /// What a terminal that does not say is taken for.
    static let standard = 80

    /// Absent unless the descriptor is a terminal that can redraw a line.
    init?(of descriptor: CInt) {
        guard isatty(descriptor) == 1 else { return nil }
        if let name = getenv("TERM"), String(cString: name) == "dumb" { return nil }
        self.descriptor = descriptor
    }

    /// Of whatever the descriptor is; ``standard`` if that is no terminal.
    init(assuming descriptor: CInt) {
        self.descriptor = descriptor
    }

    var columns: Int {
        var size = winsize()
        guard ioctl(self.descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return Self.standard }
        return Int(size.ws_col)
    }
}
