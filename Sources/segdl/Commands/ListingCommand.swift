import ArgumentParser
import SegmentedDownload

/// A subcommand that takes URLs and lists.
protocol ListingCommand: FetchingCommand {
    var urls: [String] { get }
    var input: InputOptions { get }
    var destination: DestinationOptions { get }
}

extension ListingCommand {
    var edits: [FileEdit] { self.destination.edits + self.sharedEdits }

    /// - Throws: `ValidationError` if there is nothing to fetch.
    func validateFiles() throws {
        if let word = self.urls.first, let command = Self.command(like: word) {
            throw ValidationError("\(word.shown) is neither a URL nor a command. Did you mean segdl \(command)?")
        }
        if MirrorArguments.count(self.urls) == 0, !self.input.isGiven {
            throw ValidationError("there is nothing to fetch: give a URL, or a list with -i")
        }
    }

    /// The subcommand that a word may be a slip of; nil if it looks like a host or a file.
    private static func command(like word: String) -> String? {
        guard word.allSatisfy({ $0.isLetter && $0.isASCII }) else { return nil }
        return SegdlCommand.subcommandNames.sorted().first { OptionSuggestion.isSimilar(word, $0) }
    }

    /// The files that the command line names.
    func work(_ fetch: FetchRun) async throws(DownloadError) -> FetchRun.Work {
        var found = RequestCollection()
        let base = try self.input.base
        var lists: [InputFile] = []
        let outputs = self.destination.outputs.map(\.text)
        found.hasOneDestination = outputs.count == 1 && self.destination.namesOneFile
        let files = try MirrorArguments.assigned(self.labels.mirror, among: self.urls)
        try self.check(outputs, countOfURLs: files.count)
        for (number, (url, mirrors)) in files.enumerated() {
            let file = InputFile(path: url)
            guard !file.isMetalink || file.isRemote else {
                try Self.refuse(mirrors, of: file)
                lists.append(file)
                continue
            }
            try self.instances(of: url, mirrors: mirrors) { instance, mirrors throws(DownloadError) in
                let sources = try fetch.sources(
                    URLPattern.literal(instance.url), mirrors: mirrors.map { URLPattern.literal($0) })
                var draft = try fetch.draft(sources)
                if outputs.count > 1 { draft.output = outputs[number] }
                draft.output = draft.output.map { instance.name($0) }
                try found.add(draft.finished)
            }
        }
        lists = self.input.files(besides: lists)
        var remarks: [String] = []
        for file in lists {
            let bytes = try await fetch.contents(of: file)
            remarks += try self.input.read(bytes, of: file) { entry, sources throws(DownloadError) in
                try self.add(entry, sources, relativeTo: base, of: file, fetch, to: &found)
            }
        }
        remarks += try await self.input.readListings(fetch) { entry, sources, list throws(DownloadError) in
            try self.add(entry, sources, relativeTo: base, of: list, fetch, to: &found)
        }
        try found.check()
        let count = found.requests.count + found.refused.count
        if self.destination.writesStandardOutput, StandardDescriptors.isOutputClosed {
            throw DownloadError(.file, "standard output is closed, and -o - would write to it")
        }
        if self.destination.writesStandardOutput, count > 1 {
            throw DownloadError(
                .usage, "-o - writes one file to standard output, and there are \(count)",
                hint: "Run segdl once for each: (segdl -o - A; segdl -o - B) | …")
        }
        if outputs.count == 1, self.destination.namesOneFile, count > 1 {
            throw DownloadError(
                .usage, "--output names one file, and there are \(count)",
                hint: "Name a directory with -d")
        }
        if count == 0 {
            remarks.append("there is nothing to fetch in \(lists.map(\.name).joined(separator: " and "))")
        }
        return FetchRun.Work(found, remarks: remarks)
    }

    /// Adds the file of a list's entry. A malformed entry is a file that fails.
    ///
    /// - Parameter sources: Nil if they are still to be parsed.
    private func add(
        _ entry: InputList.Entry, _ sources: [SourceURL]?, relativeTo base: ListBase?, of list: InputFile,
        _ fetch: FetchRun, to found: inout RequestCollection
    ) throws(DownloadError) {
        let request: DownloadRequest
        do throws(ListProblem) {
            let sources =
                if let sources { sources } else { try InputOptions.sources(of: entry, relativeTo: base) }
            request = try self.request(entry, sources, of: list, fetch)
        } catch {
            return found.refuse(error, in: list)
        }
        try found.add(request, at: entry.place.name(in: list.name))
    }

    /// Checks that several `-o` can be assigned to URLs.
    private func check(_ outputs: [String], countOfURLs count: Int) throws(DownloadError) {
        guard outputs.count > 1 else { return }
        guard outputs.count == count, !self.input.isGiven else {
            throw DownloadError(
                .usage, "there are \(outputs.count) -o and \(count) URLs",
                hint: "Write one -o for each URL, in their order, or a list with -i")
        }
        guard !outputs.contains("-") else {
            throw DownloadError(.usage, "-o - writes one file to standard output, and there are \(count)")
        }
    }

    private static func refuse(_ mirrors: [String], of list: InputFile) throws(DownloadError) {
        guard mirrors.isEmpty else {
            throw DownloadError(
                .usage, "--mirror cannot be used with the metalink \(list.name), which lists its own mirrors")
        }
    }

    /// What an entry of a list asks for.
    func request(
        _ entry: InputList.Entry, _ sources: [SourceURL], of list: InputFile?, _ fetch: FetchRun
    ) throws(ListProblem) -> DownloadRequest {
        var draft: RequestDraft
        do throws(DownloadError) {
            draft = try fetch.draft(sources)
            if let list { try draft.request.removeCredentialsAndFields(namedBy: list) }
        } catch {
            throw ListProblem(entry.place, error.message, code: error.code)
        }
        draft.request.lengthExpected = entry.length
        draft.request.pieceDigests = entry.pieceDigests
        for var option in entry.options {
            if entry.suggestsName, option.key == "out" {
                // The user's name counts, and the list's names in the user's directory.
                guard !self.destination.namesOneFile else { continue }
                // Only the user may name the home directory.
                option.value = HomePath.literal(option.value)
                if let output = self.destination.output?.text, output.hasSuffix("/"), !option.value.hasPrefix("/") {
                    option.value = output + option.value
                }
            }
            try draft.apply(option)
        }
        do throws(DownloadError) {
            try draft.endLayer()
        } catch {
            throw ListProblem(entry.place, error.message, code: error.code)
        }
        return draft.finished
    }

    /// The files that a URL with its mirrors stands for.
    func instances(
        of url: String, mirrors: [String],
        _ body: (URLPattern.Instance, [String]) throws(DownloadError) -> Void
    ) throws(DownloadError) {
        guard !self.destination.noGlob else { return try body(URLPattern.Instance(url: url, values: []), mirrors) }
        let pattern = try URLPattern(url)
        var others: [URLPattern] = []
        for mirror in mirrors { others.append(try URLPattern(mirror)) }
        if let other = others.first(where: { $0.count != pattern.count }) {
            throw DownloadError(
                .usage,
                "a mirror's pattern expands to \(other.count) URLs, but the URL before it to \(pattern.count)")
        }
        let instances = others.map(\.instances)
        for (number, instance) in pattern.instances.enumerated() {
            try body(instance, instances.map { $0[number].url })
        }
    }
}
