import ArgumentParser
import SegmentedDownload

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
        let base = if let baseURL { try ListBase(baseURL) } else { ListBase?.none }
        for path in self.inputFile {
            let file = InputFile(path: path)
            let bytes = try file.contents()
            do throws(ListProblem) {
                try self.read(bytes) { entry throws(ListProblem) in
                    var sources: [SourceURL] = []
                    for url in entry.urls { sources.append(try SourceURL(url, at: entry.place, relativeTo: base)) }
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
            for item in try list.entries(in: bytes) {
                let place = ListPlace.element(item.place)
                // As a list that is no JSON would say it.
                let name = item.name.map { InputList.Option(place: place, key: ListKey.out.rawValue, value: $0) }
                try take(InputList.Entry(place: place, urls: [item.url], options: name.map { [$0] } ?? []))
            }
        } else {
            var list = InputList(bytes)
            while let entry = try list.next() { try take(entry) }
        }
    }
}

extension JSONPath: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}
