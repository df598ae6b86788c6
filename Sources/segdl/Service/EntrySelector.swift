import SegmentedDownload
import SegmentedDownloadCore
import SegmentedDownloadService

/// Finds entries by what a user writes. The same word means the same entry for every command and protocol.
///
/// A word is a whole ID; otherwise the path of a file, its part or its manifest, seen from the user's directory; otherwise
/// a name or the end of a path, a URL, or the beginning of an ID. Each alternative counts only if no earlier one does.
struct EntrySelector: Sendable {
    let queue: DownloadQueue

    /// 1000 rows of the history are searched for anything but a whole ID.
    private static let rowsMax = 1000

    /// The entries of the queue, prepared for looking up many texts.
    struct Index {
        private let entries: [QueueEntry]
        private let ids: [QueueEntry.ID: Int]
        /// The entries by the last component of the file's path, and by each form of the URL.
        private let names: [Substring: [Int]]
        private let urls: [String: [Int]]

        fileprivate init(_ entries: [QueueEntry]) {
            self.entries = entries
            self.ids = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.id, $0) })
            var (names, urls): ([Substring: [Int]], [String: [Int]]) = ([:], [:])
            for (index, entry) in entries.enumerated() {
                names[EntrySelector.lastComponent(of: EntrySelector.path(of: entry)), default: []].append(index)
                for url in Set([entry.request.source.string, entry.request.source.description]) {
                    urls[url, default: []].append(index)
                }
            }
            (self.names, self.urls) = (names, urls)
        }

        /// The entries that a text may mean.
        ///
        /// - Parameter directory: The user's directory, an absolute path; nil if it is unknown.
        func entries(_ text: String, in directory: String?) -> [QueueEntry] {
            if let id = QueueEntry.ID(rawValue: text) { return self.ids[id].map { [self.entries[$0]] } ?? [] }
            let file = EntrySelector.file(of: text)
            if let path = directory.map({ EntrySelector.absolute(file, in: $0) }) {
                let found = self.entries(of: path) { $0 == path }
                if !found.isEmpty { return found.map { self.entries[$0] } }
            }
            var found = Set(self.urls[text] ?? [])
            found.formUnion(self.entries(of: file) { EntrySelector.matches(file, path: $0) })
            if EntrySelector.isPrefix(text) {
                found.formUnion(self.entries.indices.filter { self.entries[$0].id.rawValue.hasPrefix(text) })
            }
            return found.sorted().map { self.entries[$0] }
        }

        /// - Throws: ``DownloadError`` with code `usage` if there are several.
        func entry(_ text: String, in directory: String?) throws(DownloadError) -> QueueEntry? {
            try EntrySelector.only(self.entries(text, in: directory), text) { $0.id.rawValue }
        }

        /// The entries whose file has the last component of a path.
        private func entries(of path: String, where isIncluded: (String) -> Bool) -> [Int] {
            (self.names[EntrySelector.lastComponent(of: path)] ?? []).filter {
                isIncluded(EntrySelector.path(of: self.entries[$0]))
            }
        }
    }

    func index() async throws(DownloadError) -> Index { Index(try await self.queue.entries()) }

    /// - Throws: ``DownloadError`` with code `usage` if there are several.
    func entryIfAny(_ text: String, in directory: String?) async throws(DownloadError) -> QueueEntry? {
        if let id = QueueEntry.ID(rawValue: text) { return try await self.queue.entry(id) }
        return try await self.index().entry(text, in: directory)
    }

    /// The row of the history that a text means; nil if there is none. Of several downloads of one file it is the latest.
    ///
    /// - Parameter rows: The latest rows, which are read if they are nil: other texts may have needed them before.
    /// - Throws: ``DownloadError`` with code `usage` if the text is the beginning of several IDs.
    func row(
        _ text: String, in rows: inout [HistoryEntry]?, from directory: String?
    ) async throws(DownloadError) -> HistoryEntry? {
        if let id = QueueEntry.ID(rawValue: text), let row = try await self.queue.history(of: id) { return row }
        if rows == nil { rows = try await self.queue.history(limit: Self.rowsMax) }
        let rows = rows ?? []
        if let path = directory.map({ Self.absolute(Self.file(of: text), in: $0) }),
            let row = rows.first(where: { $0.path.string == path })
        {
            return row
        }
        if let row = rows.first(where: { Self.matches(text, path: $0.path.string) || $0.url == text }) { return row }
        guard Self.isPrefix(text) else { return nil }
        return try Self.only(rows.filter { $0.id.hasPrefix(text) }, text) { $0.id }
    }

    static func unknown(_ text: String) -> DownloadError {
        DownloadError(.usage, "there is no download \(text.shownWithoutSecrets)", hint: "To see all: segdl list")
    }

    /// The path of an entry's file. While the response has not named it, its name is the one that it probably gets.
    private static func path(of entry: QueueEntry) -> String {
        switch entry.request.destination {
        case .file(let path), .stream(let path): self.normalized(path.string)
        case .directory(let directory, _):
            self.normalized(directory.string) + "/" + self.name(of: entry.request.source)
        case .descriptor: "-"
        }
    }

    /// The path as ``absolute(_:in:)`` has it. Most paths have no components to remove.
    private static func normalized(_ path: String) -> String {
        path.contains("/.") ? FilePath(path).lexicallyNormalized().string : path
    }

    /// The path of the file for that of its part or its manifest.
    static func file(of text: String) -> String {
        for suffix in [DestinationPaths.partSuffix, DestinationPaths.manifestSuffix] where text.hasSuffix(suffix) {
            return String(text.dropLast(suffix.count))
        }
        return text
    }

    static func absolute(_ path: String, in directory: String) -> String {
        FilePath(directory).pushing(FilePath(path)).lexicallyNormalized().string
    }

    private static func lastComponent(of path: String) -> Substring {
        path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
    }

    private static func name(of url: SourceURL) -> String {
        let path = url.description.prefix { $0 != "?" }
        return PercentEncoding.decode((path.split(separator: "/").last ?? "").utf8)
    }

    /// Whether the text is the path or its end: a name, with or without directories.
    private static func matches(_ text: String, path: String) -> Bool {
        path == text || !text.isEmpty && !text.hasPrefix("/") && path.hasSuffix("/" + text)
    }

    /// Whether the text may be the beginning of an ID.
    private static func isPrefix(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count < 16 && text.allSatisfy { $0.isHexDigit && !$0.isUppercase }
    }

    /// - Throws: ``DownloadError`` with code `usage` if there are several.
    static func only<Element>(
        _ found: [Element], _ text: String, id: (Element) -> String
    ) throws(DownloadError) -> Element? {
        guard found.count > 1 else { return found.first }
        let names = found.prefix(4).map(id).joined(separator: ", ") + (found.count > 4 ? ", …" : "")
        throw DownloadError(
            .usage, "\(text.shownWithoutSecrets) means \(found.count) downloads: \(names)", hint: "Give one ID")
    }
}
