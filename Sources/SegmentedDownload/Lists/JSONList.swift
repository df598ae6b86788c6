import SegmentedDownloadCore

/// Describes which elements of a JSON document are files, and which of their members hold URL and name.
package struct JSONList {
    /// A file of a list.
    package struct Entry: Hashable {
        /// The path to the element.
        package var place: String
        package var url: String
        /// A single path component; `nil` if there is no name.
        package var name: String?
    }

    private let path: JSONPath?
    private let urlKey: String
    private let nameKey: String?

    package init(path: JSONPath?, urlKey: String, nameKey: String?) {
        self.path = path
        self.urlKey = urlKey
        self.nameKey = nameKey
    }

    /// 64 MiB: the document is held in memory, and takes several times its size while it is parsed.
    private static let lengthMax = 64 << 20

    /// Whether a text is JSON. A list of URLs never begins with a bracket or brace.
    package static func isJSON(_ bytes: [UInt8]) -> Bool {
        let blanks: [UInt8] = [0x20, 0x09, 0x0A, 0x0D]
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        guard let first = bytes[start...].first(where: { !blanks.contains($0) }) else { return false }
        return first == UInt8(ascii: "[") || first == UInt8(ascii: "{")
    }

    package func entries(in bytes: [UInt8]) throws(ListProblem) -> [Entry] {
        let whole = ListPlace.element("")
        guard bytes.count <= Self.lengthMax else {
            throw ListProblem(whole, "it has \(bytes.count) bytes; JSON is read up to \(Self.lengthMax)")
        }
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        guard let document = try? JSONValue(parsing: Array(bytes[start...])) else {
            throw ListProblem(whole, "it is not JSON in UTF-8, or nested more than \(JSONValue.depthMax) levels deep")
        }
        var entries: [Entry] = []
        for (place, value) in try self.elements(of: document) {
            entries.append(try self.entry(value, at: place))
        }
        return entries
    }

    private func elements(of document: JSONValue) throws(ListProblem) -> [(place: String, value: JSONValue)] {
        if let path { return try path.values(in: document) }
        guard case .array(let array) = document else {
            throw ListProblem(.element(""), "it is not an array. Give the path to the files, such as .list[]")
        }
        return array.enumerated().map { ("[\($0)]", $1) }
    }

    private func entry(_ value: JSONValue, at place: String) throws(ListProblem) -> Entry {
        switch value {
        case .string(let url):
            return Entry(place: place, url: url)
        case .object(let members):
            guard case .string(let url) = members[self.urlKey] else {
                throw ListProblem(
                    .element(place),
                    "it has no string under \"\(self.urlKey.printable)\". Name the key that has the URL")
            }
            return Entry(place: place, url: url, name: try self.name(in: members, at: place))
        case .array:
            throw ListProblem(.element(place), "it is an array. For its elements write [] at the path's end")
        case .other:
            throw ListProblem(.element(place), "it is neither a URL nor an object that contains one")
        }
    }

    /// The item's name, sanitised to a single path component, because the document may come from a server.
    private func name(
        in members: [String: JSONValue], at place: String
    ) throws(ListProblem) -> String? {
        guard let nameKey, let member = members[nameKey] else { return nil }
        guard case .string(let text) = member, let name = SafeFilename(untrusted: text) else {
            throw ListProblem(.element(place), "the value of \"\(nameKey.printable)\" is not a file name")
        }
        return name.value
    }
}
