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
            """, valueName: "FILE"), completion: .file(), transform: HomePath.file)
    var inputFile: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            Fetch the files that a page or an API lists: a directory of a web server, a repository of Hugging Face, \
            the assets of a GitHub release, a record of Zenodo or figshare, a Python package index, conda's \
            repodata.json, or SHA256SUMS. Their checksums are verified. URL can also be a file. Repeatable.
            """, valueName: "URL"), transform: HomePath.file)
    var listFrom: [String] = []

    @Option(
        help: ArgumentHelp("Fetch only those files of --list-from that match a pattern. Repeatable.", valueName: "GLOB")
    )
    var accept: [String] = []

    @Option(
        help: ArgumentHelp("Do not fetch the files of --list-from that match a pattern. Repeatable.", valueName: "GLOB")
    )
    var reject: [String] = []

    @Option(
        help: ArgumentHelp(
            "The path to the files in a JSON list, such as .list[] or .a.\"b c\"[0].files[]. (default: [])",
            valueName: "PATH"), completion: .file())
    var jsonPath: JSONPath?

    @Option(help: ArgumentHelp("The key of the URL in a JSON list.", valueName: "KEY"))
    var urlKey = "url"

    @Option(help: ArgumentHelp("The key of the file's name in a JSON list.", valueName: "KEY"))
    var nameKey: String?

    @Option(help: ArgumentHelp("The base of relative URLs in lists.", valueName: "URL"))
    var baseURL: String?

    /// Whether there is a list.
    var isGiven: Bool { !self.inputFile.isEmpty || !self.listFrom.isEmpty }

    mutating func validate() throws {
        if (self.inputFile + self.listFrom).count(where: { $0 == "-" }) > 1 {
            throw ValidationError("standard input (-i -) can be read once")
        }
        if self.listFrom.isEmpty {
            for (option, patterns) in [("--accept", self.accept), ("--reject", self.reject)] where !patterns.isEmpty {
                throw ValidationError("\(option) applies to --list-from, and there is none")
            }
        }
        if self.inputFile.isEmpty {
            for (option, isGiven) in [
                ("--json-path", self.jsonPath != nil), ("--url-key", self.urlKey != "url"),
                ("--name-key", self.nameKey != nil), ("--base-url", self.baseURL != nil && self.listFrom.isEmpty),
            ] where isGiven {
                throw ValidationError("\(option) applies to lists, and there is none; give one with -i")
            }
        }
    }

    /// Calls `take` with each file of the lists given with `--list-from`, and with the list.
    ///
    /// - Returns: A message about what is left out, if something is.
    func readListings(
        _ fetch: FetchRun, _ take: (InputList.Entry, [SourceURL], InputFile) throws(DownloadError) -> Void
    ) async throws(DownloadError) -> [String] {
        let filter = ListFilter(accept: self.accept, reject: self.reject)
        var remarks: [String] = []
        for place in self.listFrom {
            let list = try ListingSource(place, base: self.baseURL)
            let found = try await list.read(fetch)
            let files = found.files.filter { filter.includes($0.path) }
            for file in files { try take(InputList.Entry(file), [file.source], list.file) }
            let count = found.directoryCount
            let directories = count == 0 ? nil : count == 1 ? "1 directory" : "\(count) directories"
            guard files.isEmpty else {
                if let directories { remarks.append("left out of \(list.name): \(directories)") }
                continue
            }
            throw DownloadError(
                .usage,
                found.files.isEmpty
                    ? "\(list.name) lists no files"
                    : "--accept and --reject leave none of the files that \(list.name) lists (\(found.files.count))",
                hint: directories.map { "It lists \($0): give the URL of a directory with files" }
                    ?? "Nothing was downloaded")
        }
        return remarks
    }

    /// The lists given with `-i`, followed by others.
    func files(besides others: [InputFile]) -> [InputFile] { self.inputFile.map { InputFile(path: $0) } + others }

    /// Calls `take` with each entry of a list and its sources, which are nil if they are still to be parsed.
    ///
    /// - Throws: ``DownloadError`` if the list cannot be read to its end.
    /// - Returns: Messages about what a metalink has and is not used.
    func read(
        _ bytes: [UInt8], of file: InputFile, _ take: (InputList.Entry, [SourceURL]?) throws(DownloadError) -> Void
    ) throws(DownloadError) -> [String] {
        let base = try self.base
        if Metalink.isXML(bytes) {
            let metalink = try file.naming { () throws(ListProblem) in try Metalink(bytes, base) }
            return try Self.read(metalink, of: file, take)
        }
        // Options in a plain list may name any path. Only the user may choose paths, not the author of a metalink.
        guard !file.isMetalink else { throw file.failure("it is no metalink: there is no < first") }
        if self.jsonPath != nil || JSONList.isJSON(bytes) {
            for entry in try file.naming({ () throws(ListProblem) in try self.jsonEntries(bytes) }) {
                try take(entry, nil)
            }
            return []
        }
        guard !file.isRemote else {
            throw file.failure("it is neither a metalink nor JSON; a plain list can only be read from a file")
        }
        var list = InputList(bytes)
        while let entry = try file.naming({ () throws(ListProblem) in try list.next() }) { try take(entry, nil) }
        return []
    }

    /// Whether a list can only be read as a whole: a metalink or JSON.
    ///
    /// - Parameter first: Its first bytes.
    func isWhole(_ first: [UInt8], of file: InputFile) -> Bool {
        file.isMetalink || self.jsonPath != nil || Metalink.isXML(first) || JSONList.isJSON(first)
    }

    /// The base of relative URLs in lists; nil if none is given.
    var base: ListBase? {
        get throws(DownloadError) { if let baseURL { try ListBase(baseURL) } else { nil } }
    }

    /// The parsed URLs of an entry.
    ///
    /// - Throws: ``ListProblem``, also if another line of the entry is malformed.
    static func sources(
        of entry: InputList.Entry, relativeTo base: ListBase?
    ) throws(ListProblem) -> [SourceURL] {
        if let problem = entry.problem { throw problem }
        var sources: [SourceURL] = []
        for url in entry.urls { sources.append(try SourceURL(url, at: entry.place, relativeTo: base)) }
        return sources
    }

    private func jsonEntries(_ bytes: [UInt8]) throws(ListProblem) -> [InputList.Entry] {
        let list = JSONList(path: self.jsonPath, urlKey: self.urlKey, nameKey: self.nameKey)
        return try list.entries(in: bytes).map { item in
            let place = ListPlace.element(item.place)
            // The same option as in a plain list.
            let name = item.name.map { InputList.Option(place: place, key: "out", value: $0) }
            return InputList.Entry(
                place: place, urls: [item.url], options: name.map { [$0] } ?? [], suggestsName: true)
        }
    }

    private static func read(
        _ metalink: Metalink, of list: InputFile,
        _ take: (InputList.Entry, [SourceURL]?) throws(DownloadError) -> Void
    ) throws(DownloadError) -> [String] {
        for file in metalink.files {
            let place = ListPlace.line(file.line)
            // The same options as in a plain list.
            var options = [InputList.Option(place: place, key: "out", value: file.path)]
            options += file.digests.strongestFirst.map {
                InputList.Option(place: place, key: "checksum", value: $0.description)
            }
            let entry = InputList.Entry(
                place: place, urls: file.sources.map(\.string), options: options, length: file.length,
                pieceDigests: file.requiredPieces, suggestsName: true)
            try take(entry, file.sources)
        }
        return Self.remarks(on: metalink, list)
    }

    private static func remarks(on metalink: Metalink, _ list: InputFile) -> [String] {
        var remarks: [String] = []
        let leftOut = metalink.files.reduce(0) { $0 + $1.unsupportedSourceCount }
        if leftOut > 0 {
            let what = leftOut == 1 ? "1 URL that is" : "\(leftOut) URLs that are"
            remarks.append("left out of \(list.name): \(what) neither http nor https")
        }
        let unverified = metalink.files.filter {
            $0.digests.isEmpty && $0.pieces == nil && !$0.unsupportedHashTypes.isEmpty
        }
        if let first = unverified.first {
            let types = Set(unverified.flatMap(\.unsupportedHashTypes)).sorted().map(\.shown)
            let files = unverified.count == 1 ? first.path.shown : "\(unverified.count) files"
            remarks.append(
                "not verified against \(list.name): \(files), whose hashes have unsupported types "
                    + "(\(types.prefix(5).joined(separator: ", ")))")
        }
        return remarks
    }
}

extension InputList.Entry {
    /// The same options as in a plain list.
    fileprivate init(_ file: FileListing.File) {
        var options = [InputList.Option(place: file.place, key: "out", value: file.path)]
        options += file.digests.map {
            InputList.Option(place: file.place, key: "checksum", value: $0.description)
        }
        self.init(
            place: file.place, urls: [file.source.string], options: options, length: file.length, suggestsName: true)
    }
}

extension JSONPath: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}
