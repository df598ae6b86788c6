import SegmentedDownloadCore

/// The items of a list that is JSON, such as a server's catalogue, as what is to be downloaded.
///
/// ```swift
/// let catalogue = try BatchInput(json: bytes, at: ".data.list[]", urlKey: "path", nameKey: "title")
/// for request in catalogue.requests(in: "videos") { try group.add(request) }
/// ```
///
/// All of it is read before anything is begun: one bad item refuses the list, and says which it is.
public struct BatchInput: Hashable, Sendable {
    /// One file of the list.
    public struct Item: Hashable, Sendable {
        /// Where the bytes come from.
        public var source: SourceURL
        /// The file's name, one component without a path, if the list says one.
        public var name: String?
        /// The path to the item in the document, such as `.data.list[7]`.
        public var place: String
    }

    /// In the order of the document.
    public let items: [Item]

    /// Reads the list.
    ///
    /// - Parameters:
    ///   - bytes: The document in UTF-8, at most 64 MiB, nested 32 levels at most.
    ///   - path: Where the items are: `.key`, `."a key"`, `[3]` for one element and `[]` for each; absent for a document that is
    ///     an array. An item is a URL, or an object that has one.
    ///   - urlKey: Which member of an object has the URL.
    ///   - nameKey: Which member has the file's name. It is held to what a server may suggest: one component that neither hides
    ///     the file nor leaves the directory.
    ///   - base: What relative URLs are relative to, with user name and password.
    /// - Throws: ``DownloadError`` with code `usage` that names the item, where the document is no such list, a URL is none, or the
    ///   path is malformed; with code `policy` for a URL that would not be fetched.
    public init(
        json bytes: some Sequence<UInt8>, at path: String? = nil, urlKey: String = "url", nameKey: String? = nil,
        relativeTo base: String? = nil
    ) throws(DownloadError) {
        let base = if let base { try ListBase(base) } else { ListBase?.none }
        var steps: JSONPath?
        if let path {
            guard let parsed = JSONPath(path) else {
                throw DownloadError(.usage, "\"\(path.printable)\" is no path such as .list[]")
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
    /// - Parameter directory: Where the files go; those without a name are named by their responses.
    public func requests(in directory: String) -> [DownloadRequest] {
        self.items.map { item in
            guard let name = item.name else { return DownloadRequest(item.source, to: .directory(directory)) }
            let slash = directory.isEmpty || directory.hasSuffix("/") ? "" : "/"
            return DownloadRequest(item.source, to: .file(directory + slash + name))
        }
    }
}
