import SegmentedDownloadCore
public import SystemPackage

/// User names and passwords by host, in the format of `~/.netrc` that `ftp(1)`, curl and wget use.
public struct Netrc: Hashable, Sendable, CustomStringConvertible {
    private struct Entry: Hashable {
        /// The host; `nil` for `default`.
        var machine: String?
        var login: String?
        var password: String?
    }

    private var entries: [Entry] = []

    /// Reads a file.
    ///
    /// Unknown words are ignored, as by curl and wget.
    ///
    /// - Throws: ``DownloadError`` with code `file` if it cannot be read, `exists` if another user owns it or may write
    ///   to it, `policy` if it contains a password and other users may read it, `usage` if it ends within an entry or has a login
    ///   before any machine.
    public init(contentsOf path: FilePath) throws(DownloadError) {
        let path = try path.text
        let file = try GuardedFile(contentsOf: path)
        try file.requireTrustworthy(as: path.printable)
        try self.init(text: String(decoding: file.bytes, as: UTF8.self), name: path.printable)
        guard !file.isShared || self.entries.allSatisfy({ $0.password == nil }) else {
            throw DownloadError(
                .policy, "\(path.printable) contains passwords, and users other than its owner may read it",
                hint: "chmod 600 \(path.printable)")
        }
    }

    /// Reads a file up to the first malformed word, as curl and wget do. Its owner and permissions do not matter.
    /// Of a file that cannot be read, there are no entries.
    public init(optional path: FilePath) {
        guard let path = try? path.text, let file = try? GuardedFile(contentsOf: path) else { return }
        try? self.read(String(decoding: file.bytes, as: UTF8.self), name: path.printable)
    }

    /// - Parameter name: The name of the text in error messages.
    init(text: String, name: String) throws(DownloadError) {
        try self.read(text, name: name)
    }

    private mutating func read(_ text: String, name: String) throws(DownloadError) {
        var tokens = Tokens(text)
        while let word = tokens.next() {
            switch word.lowercased() {
            case "machine":
                self.entries.append(Entry(machine: try Self.value(of: word, &tokens, name).lowercased()))
            case "default":
                self.entries.append(Entry())
            case "login":
                let value = try Self.value(of: word, &tokens, name)
                try self.change(name) { $0.login = $0.login ?? value }
            case "password":
                let value = try Self.value(of: word, &tokens, name)
                try self.change(name) { $0.password = $0.password ?? value }
            case "account":
                _ = try Self.value(of: word, &tokens, name)
            case "macdef":
                tokens.skipMacro()
            default: continue
            }
        }
    }

    /// The credentials for a host, from the first entry that names it, else from `default`; `nil` if that entry has no
    /// login.
    ///
    /// - Parameters:
    ///   - hasDefault: Whether `default` counts.
    ///   - user: The user name that the entry must have; nil for any.
    func credentials(for host: String, hasDefault: Bool = true, user: String? = nil) -> Credentials? {
        let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host.lowercased()
        let entries = self.entries.filter { user == nil || $0.login == user }
        let entry = entries.first { $0.machine == name } ?? entries.first { hasDefault && $0.machine == nil }
        guard let entry, let login = entry.login, !login.contains(":") else { return nil }
        return .basic(user: login, password: entry.password ?? "")
    }

    public var description: String { "credentials for \(self.entries.count) hosts" }

    private static func value(
        of word: String, _ tokens: inout Tokens, _ name: String
    ) throws(DownloadError) -> String {
        guard let value = tokens.next(isValue: true) else {
            throw DownloadError(.usage, "\(name) ends after \(word)")
        }
        return value
    }

    private mutating func change(_ name: String, _ body: (inout Entry) -> Void) throws(DownloadError) {
        guard !self.entries.isEmpty else {
            throw DownloadError(.usage, "\(name) names a login or password before any machine")
        }
        body(&self.entries[self.entries.count - 1])
    }

    /// Splits a netrc text into words. A word in quotes may contain blanks and backslash escapes. `#` at the beginning
    /// of a word that is no value begins a comment.
    private struct Tokens {
        private var rest: Substring.UnicodeScalarView

        init(_ text: String) {
            self.rest = Substring(text).unicodeScalars
            // Some editors write a byte order mark.
            if self.rest.first == "\u{FEFF}" { self.rest.removeFirst() }
        }

        private mutating func pop() -> Unicode.Scalar? { self.rest.popFirst() }

        mutating func next(isValue: Bool = false) -> String? {
            while let first = self.rest.first, Self.isBlank(first) || first == "#" && !isValue {
                if first == "#" { while let scalar = self.rest.first, scalar != "\n" { _ = self.pop() } }
                if self.rest.first != nil { _ = self.pop() }
            }
            guard let first = self.rest.first else { return nil }
            var word = String.UnicodeScalarView()
            guard first != "\"" else {
                _ = self.pop()
                while let scalar = self.pop(), scalar != "\"" {
                    word.append(scalar == "\\" ? self.pop().map(Self.unescaped) ?? scalar : scalar)
                }
                return String(word)
            }
            while let scalar = self.rest.first, !Self.isBlank(scalar) {
                word.append(scalar)
                _ = self.pop()
            }
            return String(word)
        }

        /// Skips a macro, which ends at an empty line.
        mutating func skipMacro() {
            var isEmpty = false
            while let scalar = self.pop() {
                if scalar == "\n" {
                    if isEmpty { return }
                    isEmpty = true
                } else if scalar != "\r" {
                    isEmpty = false
                }
            }
        }

        private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
            [" ", "\t", "\n", "\r"].contains(scalar)
        }

        private static func unescaped(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
            switch scalar {
            case "n": "\n"
            case "r": "\r"
            case "t": "\t"
            default: scalar
            }
        }
    }
}
