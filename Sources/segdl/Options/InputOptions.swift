import ArgumentParser
import SegmentedDownload

/// Lists of files, and how they are read.
struct InputOptions: ParsableArguments {
    @Option(
        name: [
            .customShort("i", allowingJoined: true), .long, .customLong("metalink-file"), .customLong("input-metalink"),
        ],
        help: ArgumentHelp(
            """
            A list, or - for standard input: a URL a line, its mirrors behind tabs, key=value options of the file in \
            indented lines below it. Or a metalink or JSON, also by its URL. Repeatable.
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

    /// The lists, those of arguments that stand where URLs do too.
    func files(besides others: [InputFile]) -> [InputFile] { self.inputFile.map { InputFile(path: $0) } + others }

    /// Hands each entry of a list to `take` with its sources.
    ///
    /// - Returns: How many URLs of a metalink are left out because nothing can be fetched from them.
    func read(
        _ bytes: [UInt8], of file: InputFile, _ take: (InputList.Entry, [SourceURL]) throws(ListProblem) -> Void
    ) throws(DownloadError) -> Int {
        let base = if let baseURL { try ListBase(baseURL) } else { ListBase?.none }
        do throws(ListProblem) {
            if Metalink.isXML(bytes) { return try Self.read(try Metalink(bytes, base), take) }
            // Their options may name any path, which is not for others to say.
            guard !file.isMetalink else { throw ListProblem(.element(""), "it is no metalink: it begins with no <") }
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
                // As a list that is no JSON would say it.
                let name = item.name.map { InputList.Option(place: place, key: "out", value: $0) }
                try take(InputList.Entry(place: place, urls: [item.url], options: name.map { [$0] } ?? []))
            }
        } else {
            guard !file.isRemote else {
                throw ListProblem(
                    .element(""), "it is neither a metalink nor JSON, and other lists are read from files only")
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
            // As a list in lines would say it.
            var options = [InputList.Option(place: place, key: "out", value: file.path)]
            if let digest = file.digest {
                options.append(
                    InputList.Option(place: place, key: "checksum", value: digest.description))
            }
            let entry = InputList.Entry(
                place: place, urls: file.sources.map(\.string), options: options, length: file.length)
            try take(entry, file.sources)
        }
        return metalink.files.reduce(0) { $0 + $1.sourcesLeftOut }
    }
}

extension JSONPath: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}
