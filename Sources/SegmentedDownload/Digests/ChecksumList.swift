import SegmentedDownloadCore

/// A list of checksums by file name, in the formats of `sha256sum`, `openssl dgst` and BSD's `sha256`.
public struct ChecksumList: Hashable, Sendable {
    struct Entry: Hashable {
        /// The components of the path; `nil` if the line has only a digest.
        var path: [Substring]?
        var digest: ExpectedDigest
    }

    /// A line that is neither an entry, nor blank, a comment or part of a signature.
    struct UnreadLine: Hashable {
        /// From 1.
        var number: Int
        var text: String
    }

    private(set) var entries: [Entry] = []
    /// The lines that could not be read, in the order of the list.
    private(set) var unread: [UnreadLine] = []

    /// Parses a list. Blank lines, comments that begin with `#` or `;`, and the armour of an OpenPGP signature are skipped, and so
    /// are lines that cannot be read: the digests of the files they name are not found.
    public init(_ text: String) {
        var armour = SignatureArmour()
        // A byte order mark would make the first line unreadable.
        let lines = text.drop { $0 == "\u{FEFF}" }.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            var line = Self.trimmed(line)
            guard !armour.contains(&line), !line.isEmpty, !line.hasPrefix("#"), !line.hasPrefix(";") else { continue }
            if let entry = Self.tagged(line) ?? Self.plain(line) {
                self.entries.append(entry)
            } else {
                self.unread.append(UnreadLine(number: index + 1, text: line))
            }
        }
    }

    public var isEmpty: Bool { self.entries.isEmpty }

    /// The paths with their digests, in the order of the list, without digests that have no name.
    var files: [(path: String, digest: ExpectedDigest)] {
        self.entries.compactMap { entry in
            guard let path = entry.path, !path.isEmpty else { return nil }
            return (path.joined(separator: "/"), entry.digest)
        }
    }

    /// The first line that may name a file which ``files`` does not have.
    ///
    /// A line such as `SIZE (name) = 5` or `SHA384 (name) = …` about a file that another line names is not one, and neither is
    /// `TIMESTAMP = 5`, with which lists of BSD ports begin.
    var lostLine: UnreadLine? {
        let known = Set(self.entries.compactMap(\.path))
        return self.unread.first { line in
            if line.text.hasPrefix("TIMESTAMP = ") { return false }
            guard let open = line.text.firstIndex(of: "("), let close = line.text.lastIndex(of: ")"), open < close,
                Self.trimmed(line.text[line.text.index(after: close)...]).hasPrefix("=")
            else { return true }
            return !known.contains(Self.parts(line.text[line.text.index(after: open)..<close]))
        }
    }

    /// Parses `SHA256 (name) = digits`.
    private static func tagged(_ line: String) -> Entry? {
        guard let open = line.firstIndex(of: "("), let close = line.lastIndex(of: ")"), open < close,
            let algorithm = Self.algorithm(line[..<open])
        else { return nil }
        let rest = Self.trimmed(line[line.index(after: close)...])
        guard rest.hasPrefix("="), let digest = ExpectedDigest(algorithm, hex: Self.trimmed(rest.dropFirst())) else {
            return nil
        }
        return Entry(path: Self.parts(line[line.index(after: open)..<close]), digest: digest)
    }

    /// Parses `digits  name`, `digits *name`, or digits alone. The number of digits determines the algorithm.
    private static func plain(_ whole: String) -> Entry? {
        // GNU coreutils puts a backslash before a line whose name contains escapes.
        let isEscaped = whole.hasPrefix("\\")
        let line = whole[(isEscaped ? whole.index(after: whole.startIndex) : whole.startIndex)...]
        let digits = line.prefix { $0.isHexDigit }
        let candidates: [ExpectedDigest.Algorithm] = [.md5, .sha1, .sha256, .sha512]
        guard let algorithm = candidates.first(where: { $0.length * 2 == digits.utf8.count }),
            let digest = ExpectedDigest(algorithm, hex: String(digits))
        else { return nil }
        var rest = line[digits.endIndex...]
        guard !rest.isEmpty else { return Entry(path: nil, digest: digest) }
        guard rest.removeFirst().isWhitespace else { return nil }
        if let mark = rest.first, mark == " " || mark == "*" { rest.removeFirst() }
        let name = isEscaped ? String(rest.replacing("\\\\", with: "\\")) : String(rest)
        return Entry(path: name.isEmpty ? nil : Self.parts(name[...]), digest: digest)
    }

    /// The algorithm of a name. OpenSSL 3 calls SHA-256 `SHA2-256`.
    private static func algorithm(_ word: Substring) -> ExpectedDigest.Algorithm? {
        let name = Self.trimmed(word).lowercased()
        return ExpectedDigest.Algorithm(
            rawValue: (name.hasPrefix("sha2-") ? "sha\(name.dropFirst(5))" : name).filter { $0 != "-" })
    }

    private static func parts(_ path: Substring) -> [Substring] {
        Substring(String(path)).split(separator: "/").filter { $0 != "." }
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        let start = text.drop { $0.isWhitespace }
        guard let end = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(start[...end])
    }
}
