import SegmentedDownload
import SegmentedDownloadCore

/// The entries of a run with records, in order. Plain lists on disk and standard input are read piece by piece.
struct JobEntries {
    /// An entry of any task.
    struct Candidate {
        var entry: InputList.Entry
        /// Nil if they are still to be parsed.
        var sources: [SourceURL]?
        /// Nil for a URL of the command line.
        var list: InputFile?
        /// What relative URLs are resolved against; nil if nothing is given.
        var base: ListBase?

        /// The same text means another file with another base, so relative URLs are resolved.
        var fingerprint: EntryFingerprint {
            let urls = self.base.map { base in self.entry.urls.map { base.place(of: $0) } } ?? self.entry.urls
            return EntryFingerprint(urls: urls, options: self.entry.options.lazy.map { ($0.key, $0.value) })
        }

        /// What messages call it if there is no request.
        var name: String {
            self.list.map { self.entry.place.name(in: $0.name) }
                ?? (try? SourceURL(self.entry.urls[0]))?.description ?? "URL"
        }

        /// The entry as a list has it.
        var text: String {
            self.entry.urls.joined(separator: "\t") + "\n"
                + self.entry.options.map { "  \($0.key)=\($0.value)\n" }.joined()
        }
    }

    private enum Source {
        case known(ArraySlice<Candidate>)
        case list(InputList, InputFile)
    }

    private var sources: [Source] = []
    private let base: ListBase?

    /// The entries that the command line names. Reads all lists but plain ones.
    init(_ command: some ListingCommand, _ fetch: FetchRun) async throws(DownloadError) {
        let base = try command.input.base
        self.base = base
        var known: [Candidate] = []
        for (url, mirrors) in try MirrorArguments.assigned(command.labels.mirror, among: command.urls) {
            try command.instances(of: url, mirrors: mirrors) { instance, mirrors throws(DownloadError) in
                let urls = ([instance.url] + mirrors).map { URLPattern.literal($0) }
                var entry = InputList.Entry(place: .element(""), urls: urls)
                if let output = command.destination.output?.text {
                    entry.options.append(
                        InputList.Option(place: .element(""), key: "out", value: instance.name(output)))
                }
                known.append(
                    Candidate(entry: entry, sources: try fetch.sources(urls[0], mirrors: Array(urls.dropFirst()))))
            }
        }
        for file in command.input.files(besides: []) {
            let bytes: [UInt8]
            if file.isRemote {
                bytes = try await fetch.contents(of: file)
            } else {
                let reader = try ListReader(file)
                let first = try reader.next() ?? []
                guard command.input.isWhole(first, of: file) else {
                    self.sources.append(.list(InputList(first, then: reader), file))
                    continue
                }
                bytes = try reader.rest(after: first)
            }
            _ = try command.input.read(bytes, of: file) { entry, sources throws(DownloadError) in
                known.append(Candidate(entry: entry, sources: sources, list: file, base: base))
            }
        }
        _ = try await command.input.readListings(fetch) { entry, sources, list throws(DownloadError) in
            known.append(Candidate(entry: entry, sources: sources, list: list, base: base))
        }
        self.sources.append(.known(known[...]))
    }

    /// The next entry; nil at the end. Do not call it again after it throws.
    mutating func next() throws(DownloadError) -> Candidate? {
        while let source = self.sources.first {
            switch source {
            case .known(var candidates):
                if let candidate = candidates.popFirst() {
                    self.sources[0] = .known(candidates)
                    return candidate
                }
            case .list(var list, let file):
                // Taken out, so that the list's buffer is not copied when it changes.
                self.sources[0] = .known([])
                do throws(DownloadError) {
                    if let entry = try file.naming({ () throws(ListProblem) in try list.next() }) {
                        self.sources[0] = .list(list, file)
                        return Candidate(entry: entry, list: file, base: self.base)
                    }
                } catch {
                    self.sources = []
                    throw error
                }
            }
            self.sources.removeFirst()
        }
        return nil
    }
}
