import SegmentedDownloadCore

/// Interprets a metalink's elements and collects its files.
struct MetalinkReader {
    /// A qualified element name.
    struct Name: Hashable {
        let namespace: String
        let local: String
    }

    private enum Version: Hashable {
        case three, four
    }

    /// An open element, which determines the meaning of the elements within it.
    private enum Place: Hashable {
        case metalink, file, pieces
        /// Elements of version 3 only.
        case files, verification, resources
        case text(Text)
        /// An element that is not part of the format, and everything within it.
        case foreign
    }

    /// The meaning of an element's text.
    private enum Text: Hashable {
        case length
        case digest(ExpectedDigest.Algorithm)
        case pieceDigest
        /// A lower rank is better.
        case url(rank: Int)
    }

    /// 100,000: each file becomes a request.
    static let filesMax = 100_000
    /// 1000 for each file, of which a download uses 200.
    static let urlsPerFileMax = 1000
    /// 500,000 for all files together, about half a gigabyte.
    static let urlsMax = 500_000

    private let base: ListBase?
    private var version: Version?
    private var places: [Place] = []
    private var draft: MetalinkDraft?
    private var files: [Metalink.File] = []
    private var paths: Set<String> = []
    private var urlsCount = 0

    init(relativeTo base: ListBase?) {
        self.base = base
    }

    /// Handles the beginning of an element.
    ///
    /// - Returns: Whether the element's text is needed when it ends.
    mutating func began(
        _ name: Name, line: Int, attribute: (String) -> String?
    ) throws(ListProblem) -> Bool {
        let place = try self.place(of: name, line, attribute)
        self.places.append(place)
        if case .text = place { return true }
        return false
    }

    /// Handles the end of the innermost element.
    mutating func ended(text: String, line: Int) throws(ListProblem) {
        switch self.places.popLast() {
        case .text(let meaning)?: try self.take(text.trimmed, meaning, line)
        case .pieces?: try self.draft?.endPieces(line)
        case .file?: try self.endFile()
        case .metalink?, .files?, .verification?, .resources?, .foreign?, nil: break
        }
    }

    /// The files, after the document has ended.
    func finished() throws(ListProblem) -> [Metalink.File] {
        guard !self.files.isEmpty else { throw ListProblem(.element(""), "it is a metalink without a file") }
        return self.files
    }

    // MARK: Where an element stands

    private static let namespaces: [String: Version] = [
        "urn:ietf:params:xml:ns:metalink": .four, "http://www.metalinker.org/": .three,
    ]

    private mutating func place(
        of name: Name, _ line: Int, _ attribute: (String) -> String?
    ) throws(ListProblem) -> Place {
        guard let outer = self.places.last else {
            self.version = Self.namespaces[name.namespace]
            guard self.version != nil, name.local == "metalink" else {
                throw ListProblem(
                    .line(line),
                    "its root is \"\(name.local.printable)\" of \"\(name.namespace.printable)\", and not a metalink of version 3 or 4"
                )
            }
            return .metalink
        }
        guard let version, Self.namespaces[name.namespace] == version else { return .foreign }
        switch (version, outer, name.local) {
        case (.three, .metalink, "files"): return .files
        case (.four, .metalink, "file"), (.three, .files, "file"):
            try self.beginFile(attribute("name"), line)
            return .file
        case (_, .file, "size"): return .text(.length)
        case (.three, .file, "verification"): return .verification
        case (.three, .file, "resources"): return .resources
        case (.four, .file, "hash"), (.three, .verification, "hash"):
            guard let type = attribute("type") else { throw ListProblem(.line(line), "a hash has no type") }
            if let algorithm = Self.algorithm(type) { return .text(.digest(algorithm)) }
            self.draft?.unsupportedHashTypes.insert(type)
            return .foreign
        case (.four, .file, "pieces"), (.three, .verification, "pieces"):
            return try self.beginPieces(line, attribute) ? .pieces : .foreign
        case (_, .pieces, "hash"):
            try self.draft?.beginPiece(number: attribute("piece"), line)
            return .text(.pieceDigest)
        case (.four, .file, "url"), (.three, .resources, "url"): return try self.beginURL(version, line, attribute)
        default: return .foreign
        }
    }

    /// The algorithm of a hash type: an IANA name such as `sha-256` in version 4, `sha256` in version 3; `nil` if it is
    /// not supported.
    private static func algorithm(_ type: String) -> ExpectedDigest.Algorithm? {
        ExpectedDigest.Algorithm(rawValue: type.lowercased().filter { $0 != "-" })
    }

    private mutating func beginFile(_ name: String?, _ line: Int) throws(ListProblem) {
        guard self.files.count < Self.filesMax else {
            throw ListProblem(.line(line), "it has more than \(Self.filesMax) files")
        }
        guard let name else { throw ListProblem(.line(line), "a file has no name") }
        let path: ListedPath
        do throws(ListedPath.Refusal) {
            path = try ListedPath(name)
        } catch {
            throw ListProblem(
                .line(line), "the file name \"\(name.printable)\" is no path below a directory: it \(error.reason)")
        }
        guard self.paths.insert(path.text).inserted else {
            throw ListProblem(.line(line), "there is another file that is called \"\(path.text.printable)\"")
        }
        self.draft = MetalinkDraft(path: path.text, line: line)
    }

    private mutating func beginPieces(_ line: Int, _ attribute: (String) -> String?) throws(ListProblem) -> Bool {
        guard let type = attribute("type") else { throw ListProblem(.line(line), "pieces have no type") }
        guard let length = attribute("length").flatMap({ Int64(digits: $0) }), length > 0 else {
            throw ListProblem(.line(line), "pieces have no length of at least 1 byte")
        }
        guard let algorithm = Self.algorithm(type) else {
            self.draft?.unsupportedHashTypes.insert(type)
            return false
        }
        self.draft?.beginPieces(length: length, algorithm)
        return true
    }

    private mutating func beginURL(
        _ version: Version, _ line: Int, _ attribute: (String) -> String?
    ) throws(ListProblem) -> Place {
        self.urlsCount += 1
        self.draft?.urlsCount += 1
        guard self.urlsCount <= Self.urlsMax, (self.draft?.urlsCount ?? 0) <= Self.urlsPerFileMax else {
            throw ListProblem(
                .line(line), "there are more than \(Self.urlsPerFileMax) URLs of a file, or \(Self.urlsMax) in all")
        }
        let rank = try Self.rank(version, line, attribute)
        // The URL of a torrent often has the scheme `http`.
        if version == .three, let type = attribute("type")?.lowercased(), type != "http", type != "https" {
            self.draft?.unsupportedSourceCount += 1
            return .foreign
        }
        return .text(.url(rank: rank))
    }

    /// The rank of a source, lowest first: `priority` from 1 to 999999 in version 4 (RFC 5854, section 4.2.16.1),
    /// `preference` from 100 down to 0 in version 3. Sources without one come last.
    private static func rank(
        _ version: Version, _ line: Int, _ attribute: (String) -> String?
    ) throws(ListProblem) -> Int {
        switch version {
        case .four:
            guard let text = attribute("priority") else { return .max }
            guard let priority = Int64(digits: text), (1...999_999).contains(priority) else {
                throw ListProblem(.line(line), "a priority is from 1 to 999999, not \"\(text.printable)\"")
            }
            return Int(priority)
        case .three:
            guard let text = attribute("preference") else { return .max }
            guard let preference = Int64(digits: text), preference <= 100 else {
                throw ListProblem(.line(line), "a preference is from 0 to 100, not \"\(text.printable)\"")
            }
            return 100 - Int(preference)
        }
    }

    // MARK: What its text says

    private mutating func take(_ text: String, _ meaning: Text, _ line: Int) throws(ListProblem) {
        switch meaning {
        case .length: try self.draft?.take(length: text, line)
        case .digest(let algorithm): try self.draft?.take(digest: text, algorithm, line)
        case .pieceDigest: try self.draft?.take(pieceDigest: text, line)
        case .url(let rank):
            if let scheme = SourceURL.scheme(of: text), scheme != "http", scheme != "https" {
                self.draft?.unsupportedSourceCount += 1
            } else {
                let source = try self.source(text, line)
                self.draft?.sources.append((rank, source))
            }
        }
    }

    private func source(_ text: String, _ line: Int) throws(ListProblem) -> SourceURL {
        do throws(ListProblem) {
            return try SourceURL(text.percentEncodingOthers, at: .line(line), relativeTo: self.base)
        } catch {
            // A URL without a valid scheme, such as "://a", is malformed rather than of an unsupported scheme.
            throw ListProblem(error.place, error.message)
        }
    }

    private mutating func endFile() throws(ListProblem) {
        guard let draft = self.draft else { return }
        self.files.append(try draft.file)
        self.draft = nil
    }
}

extension Int64 {
    /// Parses decimal digits; `nil` if the text has other characters or the number is too large.
    init?(digits text: String) {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(text) else { return nil }
        self = number
    }
}

extension String {
    /// The text without XML white space at both ends.
    fileprivate var trimmed: String {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        let start = self.utf8.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(Substring(start[...last]))
    }

    /// The URL of an IRI, by percent-encoding all bytes that are not ASCII (RFC 3987, section 3.1).
    fileprivate var percentEncodingOthers: String {
        guard !self.utf8.allSatisfy({ $0 < 0x80 }) else { return self }
        var bytes: [UInt8] = []
        for byte in self.utf8 {
            if byte < 0x80 {
                bytes.append(byte)
            } else {
                bytes += Array("%\(String(byte, radix: 16, uppercase: true))".utf8)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
