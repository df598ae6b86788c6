import SegmentedDownloadCore
public import SystemPackage

/// The files of a JSON list, such as a server's catalogue.
///
/// ```swift
/// let catalogue = try BatchInput(json: bytes, at: ".data.list[]", urlKey: "path", nameKey: "title")
/// for request in catalogue.requests(in: "videos") { try group.add(request) }
/// ```
///
/// The whole list is read before anything is downloaded. A single malformed item rejects the list, and the error names
/// the item.
public struct BatchInput: Hashable, Sendable {
    /// One file of the list.
    public struct Item: Hashable, Sendable {
        /// The URL of the file.
        public var source: SourceURL
        /// The file's name, a single path component; `nil` if the list has none.
        public var name: String?
        /// The path to the item in the document, such as `.data.list[7]`.
        public var place: String
    }

    /// The items in the order of the document.
    public let items: [Item]

    /// Parses a list.
    ///
    /// - Parameters:
    ///   - bytes: The document in UTF-8, at most 64 MiB and nested at most 32 levels deep.
    ///   - path: The path to the items: `.key`, `."a key"`, `[3]` for one element, `[]` for each; `nil` if the document
    ///     is an array. An item is a URL, or an object that contains one.
    ///   - urlKey: The object member that holds the URL.
    ///   - nameKey: The object member that holds the file's name. The name is sanitised like one that a server
    ///     suggests.
    ///   - base: The URL that relative URLs are resolved against, with its user name and password.
    /// - Throws: ``DownloadError`` with code `usage` if the document, an item's URL or the path is malformed, `policy`
    ///   if a URL's scheme is not allowed. The message names the item.
    public init(
        json bytes: some Sequence<UInt8>, at path: String? = nil, urlKey: String = "url", nameKey: String? = nil,
        relativeTo base: String? = nil
    ) throws(DownloadError) {
        let base = if let base { try ListBase(base) } else { ListBase?.none }
        var steps: JSONPath?
        if let path {
            guard let parsed = JSONPath(path) else {
                throw DownloadError(.usage, "\"\(path.printable)\" is not a path such as .list[]")
            }
            steps = parsed
        }
        do throws(ListProblem) {
            let list = JSONList(path: steps, urlKey: urlKey, nameKey: nameKey)
            var items: [Item] = []
            for entry in try list.entries(in: Array(bytes)) {
                let source = try SourceURL(entry.url, at: .element(entry.place), relativeTo: base)
                items.append(Item(source: source, name: entry.name, place: entry.place))
            }
            self.items = items
        } catch {
            throw error.failure(in: "the list")
        }
    }

    /// A request for every item, in order.
    ///
    /// - Parameter directory: The directory for the files. Files without a name are named by their responses.
    public func requests(in directory: FilePath) -> [DownloadRequest] {
        self.items.map { item in
            guard let name = item.name else { return DownloadRequest(item.source, to: .directory(directory)) }
            return DownloadRequest(item.source, to: .file(directory.appending(name)))
        }
    }
}
