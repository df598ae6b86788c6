import SegmentedDownloadCore

/// A list of checksums by file name, in the formats of `sha256sum`, `openssl dgst` and BSD's `sha256`.
public struct ChecksumList: Hashable, Sendable {
    struct Entry: Hashable {
        /// The components of the path; `nil` if the line has only a digest.
        var path: [Substring]?
        var digest: ExpectedDigest
    }

    private(set) var entries: [Entry] = []

    /// Parses a list. Other lines, such as the signature around it, are skipped.
    public init(_ text: String) {
        for line in text.split(whereSeparator: \.isNewline) {
            let line = Self.trimmed(line)
            if let entry = Self.tagged(line) ?? Self.plain(line) { self.entries.append(entry) }
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
