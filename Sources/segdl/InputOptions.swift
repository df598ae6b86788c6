import ArgumentParser
import SegmentedDownload

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Lists of files, and how they are read.
struct InputOptions: ParsableArguments {
    @Option(
        name: [.customShort("i", allowingJoined: true), .long],
        help: ArgumentHelp(
            """
            A list, or - for standard input: a URL a line, its mirrors behind tabs, key=value options of the file in \
            indented lines below it. Or JSON. Repeatable.
            """, valueName: "FILE"))
    var inputFile: [String] = []

    @Option(
        help: ArgumentHelp(
            "Where the files are in a list that is JSON, such as .list[] or .a.\"b c\"[0].files[]. (default: [])",
            valueName: "PATH"))
    var jsonPath: JSONPath?

    @Option(help: ArgumentHelp("Which key of an element has its URL.", valueName: "KEY"))
    var urlKey = "url"

    @Option(help: ArgumentHelp("Which key of an element has the file's name.", valueName: "KEY"))
    var nameKey: String?

    @Option(help: ArgumentHelp("What relative URLs of lists are relative to.", valueName: "URL"))
    var baseURL: String?

    mutating func validate() throws {
        guard self.inputFile.isEmpty else {
            if self.inputFile.count(where: { $0 == "-" }) > 1 {
                throw ValidationError("standard input (-i -) can be read once")
            }
            return
        }
        for (option, isGiven) in [
            ("--json-path", self.jsonPath != nil), ("--url-key", self.urlKey != "url"),
            ("--name-key", self.nameKey != nil), ("--base-url", self.baseURL != nil),
        ] where isGiven {
            throw ValidationError("\(option) is about lists, and there is none; name one with -i")
        }
    }

    /// Reads every list, and hands each entry to `take` with its sources.
    func read(
        _ take: (InputList.Entry, [SourceURL]) throws(ListProblem) -> Void
    ) throws(DownloadError) {
        let base = try self.base
        for path in self.inputFile {
            let file = InputFile(path: path)
            let bytes = try file.contents()
            do throws(ListProblem) {
                try self.read(bytes) { entry throws(ListProblem) in
                    var sources: [SourceURL] = []
                    for url in entry.urls { sources.append(try Self.source(url, at: entry.place, base: base)) }
                    try take(entry, sources)
                }
            } catch {
                throw error.failure(in: file.name)
            }
        }
    }

    private func read(
        _ bytes: [UInt8], _ take: (InputList.Entry) throws(ListProblem) -> Void
    ) throws(ListProblem) {
        if self.jsonPath != nil || JSONList.isJSON(bytes) {
            let list = JSONList(path: self.jsonPath, urlKey: self.urlKey, nameKey: self.nameKey)
            for entry in try list.entries(in: bytes) { try take(entry) }
        } else {
            var list = InputList(bytes)
            while let entry = try list.next() { try take(entry) }
        }
    }

    /// Checked as a source, kept as it was written: relative URLs inherit its user name and password.
    private var base: URL? {
        get throws(DownloadError) {
            guard let baseURL else { return nil }
            _ = try SourceURL(baseURL)
            return URL(string: baseURL)
        }
    }

    private static func source(
        _ text: String, at place: InputList.Place, base: URL?
    ) throws(ListProblem) -> SourceURL {
        do throws(DownloadError) {
            guard !Self.hasScheme(text), let base else { return try SourceURL(text) }
            guard let url = URL(string: text, relativeTo: base) else { return try SourceURL(text) }
            return try SourceURL(url.absoluteString)
        } catch {
            let isRelative = !Self.hasScheme(text)
            throw ListProblem(
                place, error.message + (isRelative && base == nil ? ", or what it is relative to in --base-url" : ""),
                code: error.code)
        }
    }

    /// Whether a URL is absolute (RFC 3986 §3.1).
    private static func hasScheme(_ text: String) -> Bool {
        let scheme = text.utf8.prefix { byte in
            byte.isASCIILetter || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.".utf8.contains(byte)
        }
        guard let first = scheme.first, first.isASCIILetter else { return false }
        return text.utf8.dropFirst(scheme.count).first == UInt8(ascii: ":")
    }
}

extension UInt8 {
    fileprivate var isASCIILetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }
}
