import ArgumentParser

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The home directory at the beginning of a path that no shell has expanded.
///
/// A shell expands `-d ~/isos`, but not `--dir=~/isos`, and nothing expands a path in the configuration file, a variable, a
/// list or a request to the service. Every option with a path reads it here, so that `~/` means the same everywhere.
/// `./~` is a file with this name.
enum HomePath {
    /// The path with the home directory in place of `~`, `$HOME` or `${HOME}` before its first slash.
    ///
    /// - Parameter isDirectory: Whether the path names a directory. A file may have a name such as `~$Report.docx`.
    /// - Returns: Nil if the path begins with the home directory of another user or with another variable, or if `HOME` is
    ///   not set.
    static func expanded(_ text: String, isDirectory: Bool = false) -> String? {
        let head = text.prefix { $0 != "/" }
        guard Self.isExpandable(head) else { return text }
        guard ["~", "$HOME", "${HOME}"].contains(head) else {
            return isDirectory || head.endIndex != text.endIndex ? nil : text
        }
        guard let home = getenv("HOME").map({ String(cString: $0) }), home.hasPrefix("/") else { return nil }
        return home + text[head.endIndex...]
    }

    /// A path that ``expanded(_:isDirectory:)`` leaves as it is, for a name that a server or a URL gives.
    static func literal(_ name: String) -> String { Self.expanded(name) == name ? name : "./" + name }

    /// Why a path cannot be expanded; nil if it can.
    static func objection(to text: String, isDirectory: Bool = false) -> String? {
        guard !text.isEmpty, Self.expanded(text, isDirectory: isDirectory) == nil else { return nil }
        let head = text.prefix { $0 != "/" }
        if ["~", "$HOME", "${HOME}"].contains(head) { return "the variable HOME is not set" }
        return "only ~ and $HOME are expanded; write ./\(String(head).shown) for this name"
    }

    /// Whether a shell may expand the text before the first slash.
    private static func isExpandable(_ head: Substring) -> Bool {
        if head.hasPrefix("~") { return true }
        guard head.hasPrefix("$"), let next = head.dropFirst().first else { return false }
        return next == "{" || next == "_" || next.isASCII && next.isLetter
    }

    // MARK: The parser

    /// Reads the argument of an option that takes a file.
    static func file(_ text: String) throws -> String { try Self.argument(text, isDirectory: false) }

    /// Reads the argument of an option that takes a directory.
    static func directory(_ text: String) throws -> String { try Self.argument(text, isDirectory: true) }

    private static func argument(_ text: String, isDirectory: Bool) throws -> String {
        guard let path = Self.expanded(text, isDirectory: isDirectory) else {
            throw ValidationError(Self.objection(to: text, isDirectory: isDirectory) ?? "it is no path")
        }
        return path
    }
}
