import ArgumentParser
import SegmentedDownload

/// The options for lists of files.
struct InputOptions: ParsableArguments {
    @Option(
        name: [
            .customShort("i", allowingJoined: true), .long, .customLong("metalink-file"), .customLong("input-metalink"),
        ],
        help: ArgumentHelp(
            """
            Fetch the files of a list; - for standard input. A list has one URL on a line, its mirrors after tabs, and \
            the file's options as key=value in indented lines below it. It can also be a metalink or JSON, or a URL of \
            one. Repeatable.
            """, valueName: "FILE"))
    var inputFile: [String] = []

    @Option(
        help: ArgumentHelp(
            "The path to the files in a JSON list, such as .list[] or .a.\"b c\"[0].files[]. (default: [])",
            valueName: "PATH"))
    var jsonPath: JSONPath?

    @Option(help: ArgumentHelp("The key of the URL in a JSON list.", valueName: "KEY"))
    var urlKey = "url"

    @Option(help: ArgumentHelp("The key of the file's name in a JSON list.", valueName: "KEY"))
    var nameKey: String?

    @Option(help: ArgumentHelp("The base of relative URLs in lists.", valueName: "URL"))
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
            throw ValidationError("\(option) applies to lists, and there is none; give one with -i")
        }
    }

    /// The lists given with `-i`, followed by others.
    func files(besides others: [InputFile]) -> [InputFile] { self.inputFile.map { InputFile(path: $0) } + others }

    /// Calls `take` with each entry of a list and its sources.
    ///
    /// - Returns: The number of a metalink's URLs that are left out because their scheme is not supported.
    func read(
        _ bytes: [UInt8], of file: InputFile, _ take: (InputList.Entry, [SourceURL]) throws(ListProblem) -> Void
    ) throws(DownloadError) -> Int {
        let base = if let baseURL { try ListBase(baseURL) } else { ListBase?.none }
        do throws(ListProblem) {
            if Metalink.isXML(bytes) { return try Self.read(try Metalink(bytes, base), take) }
            // Options in a plain list may name any path. Only the user may choose paths, not the author of a metalink.
            guard !file.isMetalink else { throw ListProblem(.element(""), "it is no metalink: there is no < first") }
            try self.read(bytes, of: file) { entry throws(ListProblem) in
                var sources: [SourceURL] = []
                for url in entry.urls { sources.append(try SourceURL(url, at: entry.place, relativeTo: base)) }
                try take(entry, sources)
            }
            return 0
        } catch {
            throw error.failure(in: file.name)
        }
    }

    private func read(
        _ bytes: [UInt8], of file: InputFile, _ take: (InputList.Entry) throws(ListProblem) -> Void
    ) throws(ListProblem) {
        if self.jsonPath != nil || JSONList.isJSON(bytes) {
            let list = JSONList(path: self.jsonPath, urlKey: self.urlKey, nameKey: self.nameKey)
            for item in try list.entries(in: bytes) {
                let place = ListPlace.element(item.place)
                // The same option as in a plain list.
                let name = item.name.map { InputList.Option(place: place, key: "out", value: $0) }
                try take(InputList.Entry(place: place, urls: [item.url], options: name.map { [$0] } ?? []))
            }
        } else {
            guard !file.isRemote else {
                throw ListProblem(
                    .element(""), "it is neither a metalink nor JSON; a plain list can only be read from a file")
            }
            var list = InputList(bytes)
            while let entry = try list.next() { try take(entry) }
        }
    }

    private static func read(
        _ metalink: Metalink, _ take: (InputList.Entry, [SourceURL]) throws(ListProblem) -> Void
    ) throws(ListProblem) -> Int {
        for file in metalink.files {
            let place = ListPlace.line(file.line)
            // The same options as in a plain list.
            var options = [InputList.Option(place: place, key: "out", value: file.path)]
            if let digest = file.digest {
                options.append(
                    InputList.Option(place: place, key: "checksum", value: digest.description))
            }
            let entry = InputList.Entry(
                place: place, urls: file.sources.map(\.string), options: options, length: file.length)
            try take(entry, file.sources)
        }
        return metalink.files.reduce(0) { $0 + $1.unsupportedSourceCount }
    }
}

extension JSONPath: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}
