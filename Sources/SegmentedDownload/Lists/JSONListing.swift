import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The files in an answer of an API, which is recognised by the members of its objects.
enum JSONListing {
    /// The answer of an API, in one of its formats.
    protocol Answer: Decodable {
        /// - Parameter source: The URL of the answer, if it is known.
        func drafts(from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft]
    }

    /// An element of an answer that is an array.
    protocol Element: Decodable {
        static func drafts(of elements: [Self], from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft]
    }

    static func drafts(in bytes: [UInt8], from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        let data = Data(bytes[start...])
        let decoder = JSONDecoder()
        guard let shape = try? decoder.decode(Shape.self, from: data) else {
            throw ListProblem(.element(""), "it is not JSON in UTF-8")
        }
        guard let format = shape.format else {
            // An empty array is the page of a directory without files.
            if shape.isEmptyArray { return [] }
            throw ListProblem(
                .element(""), "its format is not known. Any other JSON is an input file, with the path to its URLs")
        }
        do {
            return try decoder.decode(format, from: data).drafts(from: source)
        } catch let problem as ListProblem {
            throw problem
        } catch {
            throw Self.problem(error)
        }
    }

    private static func problem(_ error: any Error) -> ListProblem {
        let context: DecodingError.Context? =
            switch error as? DecodingError {
            case .typeMismatch(_, let context)?, .valueNotFound(_, let context)?, .dataCorrupted(let context)?: context
            case .keyNotFound(let key, let context)?:
                DecodingError.Context(codingPath: context.codingPath + [key], debugDescription: "")
            case nil: nil
            @unknown default: nil
            }
        let path = (context?.codingPath ?? []).map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
        return ListProblem(.element(path), "the value is missing, or not of the kind that the API states")
    }
}

extension Array: JSONListing.Answer where Element: JSONListing.Element {
    func drafts(from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        try Element.drafts(of: self, from: source)
    }
}

/// Any member of an object.
struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// The members of an answer's first objects, which distinguish the formats.
private struct Shape: Decodable {
    /// The members of an object, or of the first element of an array.
    private struct Members: Decodable {
        var names: Set<String> = []

        init(from decoder: any Decoder) throws {
            if var array = try? decoder.unkeyedContainer() {
                guard !array.isAtEnd, let first = try? array.decode(Members.self) else { return }
                self.names = first.names
            } else if let object = try? decoder.container(keyedBy: AnyKey.self) {
                self.names = Set(object.allKeys.map(\.stringValue))
            }
        }
    }

    private var isArray = false
    private(set) var isEmptyArray = false
    private var names: Set<String> = []
    /// The members of the first element of `files`.
    private var fileNames: Set<String> = []

    init(from decoder: any Decoder) throws {
        self.names = try Members(from: decoder).names
        if let array = try? decoder.unkeyedContainer() {
            self.isArray = true
            self.isEmptyArray = array.isAtEnd
        } else if let object = try? decoder.container(keyedBy: AnyKey.self) {
            self.fileNames = (try? object.decode(Members.self, forKey: AnyKey(stringValue: "files")))?.names ?? []
        }
    }

    var format: (any JSONListing.Answer.Type)? {
        func has(_ wanted: String...) -> Bool { self.names.isSuperset(of: wanted) }
        if self.isArray {
            if has("type", "oid", "path") { return [RepositoryFile].self }
            if has("tag_name", "assets") { return [GitHubRelease].self }
            return has("download_url", "name") ? [FigshareFile].self : nil
        }
        if has("tag_name", "assets") { return GitHubRelease.self }
        if has("packages", "info") { return CondaRepodata.self }
        if has("install", "pip_version") { return PipReport.self }
        if has("meta", "files", "name") { return PythonPackageIndex.self }
        if has("entries", "links") { return ZenodoRecord.self }
        guard has("files") else { return nil }
        if self.fileNames.contains("download_url") { return FigshareArticle.self }
        return self.fileNames.isSuperset(of: ["key", "links"]) ? ZenodoRecord.self : nil
    }
}

extension [ExpectedDigest] {
    /// The digest of a text such as `sha256:9f86…` or `md5:…`; none if the algorithm is not supported.
    static func tagged(_ text: String?, at place: ListPlace) throws(ListProblem) -> [ExpectedDigest] {
        guard let text, let colon = text.firstIndex(of: ":") else { return [] }
        return try Self.of(String(text[..<colon]), String(text[text.index(after: colon)...]), at: place)
    }

    /// The digest with this name of its algorithm; none if the algorithm is not supported.
    static func of(_ name: String, _ hex: String?, at place: ListPlace) throws(ListProblem) -> [ExpectedDigest] {
        guard let hex, !hex.isEmpty, let algorithm = ExpectedDigest.Algorithm(rawValue: name.lowercased()) else {
            return []
        }
        guard let digest = ExpectedDigest(algorithm, hex: hex) else {
            throw ListProblem(place, "\"\(hex.printable)\" is not a digest of \(algorithm.rawValue)")
        }
        return [digest]
    }
}
