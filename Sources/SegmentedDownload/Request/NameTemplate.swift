import SegmentedDownloadCore

/// A template for the name of a file in a directory.
///
/// A template is text with placeholders: `{name}` is the name that the response or the URL suggests; `{ext}` is that
/// name's extension with its dot, or nothing; `{md5url}` is the MD5 of the URL in hexadecimal; `{host}` is the host;
/// `{id}` is the download's id. The result is sanitised like any suggested name: it is one visible file name in the
/// directory.
public struct NameTemplate: Hashable, Sendable {
    private enum Piece: Hashable {
        case text(String)
        case name, `extension`, digest, host, id
    }

    /// The template's text.
    public let text: String
    private let pieces: [Piece]

    /// Parses a template.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the text is empty, or has an unknown placeholder, an unclosed
    ///   brace or a slash.
    public init(_ text: String) throws(DownloadError) {
        self.text = text
        var pieces: [Piece] = []
        var rest = text[...]
        while let brace = rest.firstIndex(of: "{") {
            if brace > rest.startIndex { pieces.append(.text(String(rest[..<brace]))) }
            guard let end = rest[brace...].firstIndex(of: "}") else {
                throw DownloadError(.usage, "the name template \"\(text.printable)\" has a { without a }")
            }
            let word = rest[rest.index(after: brace)..<end]
            switch word {
            case "name": pieces.append(.name)
            case "ext": pieces.append(.extension)
            case "md5url": pieces.append(.digest)
            case "host": pieces.append(.host)
            case "id": pieces.append(.id)
            default:
                throw DownloadError(
                    .usage,
                    "the name template \"\(text.printable)\" has the unknown placeholder {\(String(word).printable)}",
                    hint: "Use {name}, {ext}, {md5url}, {host} or {id}")
            }
            rest = rest[rest.index(after: end)...]
        }
        if !rest.isEmpty { pieces.append(.text(String(rest))) }
        guard !text.utf8.contains(UInt8(ascii: "/")) else {
            throw DownloadError(
                .usage, "the name template \"\(text.printable)\" contains a slash",
                hint: "Give the directory as the destination and only a file name as the template")
        }
        guard !pieces.isEmpty else { throw DownloadError(.usage, "the name template is empty") }
        self.pieces = pieces
    }

    /// Whether the template contains `{id}`, so that downloads of one URL get different names.
    var usesID: Bool { self.pieces.contains(.id) }

    /// The file's name; `nil` if no valid file name remains.
    func filename(suggested: SafeFilename, source: SourceURL, id: Download.ID) -> SafeFilename? {
        let name = self.pieces.map { piece in
            switch piece {
            case .text(let text): text
            case .name: suggested.value
            case .extension: Self.pathExtension(of: suggested.value)
            case .digest: Self.digest(of: source)
            case .host: source.origin.host
            // `SafeFilename` drops everything before a slash as a directory.
            case .id: id.rawValue.replacing("/", with: "_")
            }
        }.joined()
        return SafeFilename(untrusted: name)
    }

    private static func pathExtension(of name: String) -> String {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else { return "" }
        let found = name[dot...]
        return found.utf8.count > 1 ? String(found) : ""
    }

    /// The MD5 of the stored URL, which has no user name, password or fragment.
    private static func digest(of source: SourceURL) -> String {
        var digest = RunningDigest(.md5)
        Array(source.string.utf8).withUnsafeBytes { digest.update($0) }
        return digest.hex
    }
}
