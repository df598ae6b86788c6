import SegmentedDownloadCore

/// A list of files as JSON: which elements of a document are files, and which of their members say what.
package struct JSONList {
    /// One file of a list.
    package struct Entry: Hashable {
        /// The path to it.
        package var place: String
        package var url: String
        /// One component.
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

    /// 64 MiB: a document is held whole, and several times its size while it is read.
    private static let lengthMax = 64 << 20

    /// Whether a text is JSON rather than a list of URLs, none of which begins so.
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
            throw ListProblem(whole, "it is no JSON in UTF-8, or nested more than \(JSONValue.depthMax) levels deep")
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
            throw ListProblem(.element(""), "it is no array. Say where the files are, such as .list[]")
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
                    "it has no text under \"\(self.urlKey.printable)\". Say which key has the URL")
            }
            return Entry(place: place, url: url, name: try self.name(in: members, at: place))
        case .array:
            throw ListProblem(.element(place), "it is an array. For its elements write [] at the path's end")
        case .other:
            throw ListProblem(.element(place), "it is neither a URL nor an object that has one")
        }
    }

    /// A document often comes from a server, so that a name in it is held to what a server's may be: one component.
    private func name(
        in members: [String: JSONValue], at place: String
    ) throws(ListProblem) -> String? {
        guard let nameKey, let member = members[nameKey] else { return nil }
        guard case .string(let text) = member, let name = SafeFilename(untrusted: text) else {
            throw ListProblem(.element(place), "what it has under \"\(nameKey.printable)\" is no file name")
        }
        return name.value
    }
}
