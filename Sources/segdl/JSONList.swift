import SegmentedDownloadCore

/// A list of files as JSON: which elements of a document are files, and which of their members say what.
struct JSONList {
    var path: JSONPath?
    var urlKey: String
    var nameKey: String?

    /// 64 MiB: a document is held whole, and several times its size while it is read.
    static let lengthMax = 64 << 20

    /// Whether a text is JSON rather than a list of URLs, none of which begins so.
    static func isJSON(_ bytes: [UInt8]) -> Bool {
        let blanks: [UInt8] = [0x20, 0x09, 0x0A, 0x0D]
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        guard let first = bytes[start...].first(where: { !blanks.contains($0) }) else { return false }
        return first == UInt8(ascii: "[") || first == UInt8(ascii: "{")
    }

    func entries(in bytes: [UInt8]) throws(ListProblem) -> [InputList.Entry] {
        let whole = InputList.Place.element("")
        guard bytes.count <= Self.lengthMax else {
            throw ListProblem(whole, "it has \(bytes.count) bytes; JSON is read up to \(Self.lengthMax)")
        }
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        guard let document = try? JSONValue(parsing: Array(bytes[start...])) else {
            throw ListProblem(whole, "it is no JSON in UTF-8, or nested more than \(JSONValue.depthMax) levels deep")
        }
        var entries: [InputList.Entry] = []
        for (place, value) in try self.elements(of: document) {
            entries.append(try self.entry(value, at: .element(place)))
        }
        return entries
    }

    private func elements(of document: JSONValue) throws(ListProblem) -> [(place: String, value: JSONValue)] {
        if let path { return try path.values(in: document) }
        guard case .array(let array) = document else {
            throw ListProblem(.element(""), "it is no array. Say where the files are, such as --json-path '.list[]'")
        }
        return array.enumerated().map { ("[\($0)]", $1) }
    }

    private func entry(_ value: JSONValue, at place: InputList.Place) throws(ListProblem) -> InputList.Entry {
        switch value {
        case .string(let url):
            return InputList.Entry(place: place, urls: [url])
        case .object(let members):
            guard case .string(let url) = members[self.urlKey] else {
                throw ListProblem(
                    place, "it has no text under \"\(self.urlKey.shown)\". Say which key has the URL with --url-key")
            }
            return InputList.Entry(place: place, urls: [url], options: try self.name(in: members, at: place))
        case .array:
            throw ListProblem(place, "it is an array. For its elements write [] at the path's end")
        case .other:
            throw ListProblem(place, "it is neither a URL nor an object that has one")
        }
    }

    /// A document often comes from a server, so that a name in it is held to what a server's may be: one component.
    private func name(
        in members: [String: JSONValue], at place: InputList.Place
    ) throws(ListProblem) -> [InputList.Option] {
        guard let nameKey, let member = members[nameKey] else { return [] }
        guard case .string(let text) = member, let name = SafeFilename(untrusted: text) else {
            throw ListProblem(place, "what it has under \"\(nameKey.shown)\" is no file name")
        }
        return [InputList.Option(place: place, key: ListKey.out.rawValue, value: name.value)]
    }
}
