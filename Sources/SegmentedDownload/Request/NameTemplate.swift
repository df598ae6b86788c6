import SegmentedDownloadCore

/// How a file in a directory is named.
///
/// Text with placeholders: `{name}`, the name the response or the URL suggests; `{ext}`, that name's extension with its dot, or
/// nothing; `{md5url}`, the MD5 of the URL in hexadecimal digits; `{host}`; `{id}`, the download's. What comes of it is made safe
/// as every suggested name is: it cannot leave the directory, hide or deceive.
public struct NameTemplate: Hashable, Sendable {
    private enum Piece: Hashable {
        case text(String)
        case name, `extension`, digest, host, id
    }

    /// As it was given.
    public let text: String
    private let pieces: [Piece]

    /// - Throws: ``DownloadError`` with code `usage` for an unknown placeholder, an open brace or a slash.
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
                    "the name template \"\(text.printable)\" has {\(String(word).printable)}, which means nothing",
                    hint: "There are {name}, {ext}, {md5url}, {host} and {id}")
            }
            rest = rest[rest.index(after: end)...]
        }
        if !rest.isEmpty { pieces.append(.text(String(rest))) }
        guard !text.utf8.contains(UInt8(ascii: "/")) else {
            throw DownloadError(
                .usage, "the name template \"\(text.printable)\" has a slash, and a name has none",
                hint: "Name the directory apart")
        }
        guard !pieces.isEmpty else { throw DownloadError(.usage, "the name template is empty") }
        self.pieces = pieces
    }

    /// Whether two downloads of one URL have two names.
    var usesID: Bool { self.pieces.contains(.id) }

    /// The file's name; absent where nothing is left of it that may be one.
    func filename(suggested: SafeFilename, source: SourceURL, id: Download.ID) -> SafeFilename? {
        let name = self.pieces.map { piece in
            switch piece {
            case .text(let text): text
            case .name: suggested.value
            case .extension: Self.pathExtension(of: suggested.value)
            case .digest: Self.digest(of: source)
            case .host: source.origin.host
            // A slash would have all before it taken for a directory and dropped.
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

    /// Of the URL as it is stored, without user name, password and fragment.
    private static func digest(of source: SourceURL) -> String {
        var digest = RunningDigest(.md5)
        Array(source.string.utf8).withUnsafeBytes { digest.update($0) }
        return digest.hex
    }
}
