import SegmentedDownload
import SegmentedDownloadCore
import SegmentedDownloadService

/// Finds entries by what a user writes: an ID, the beginning of one, a path or a URL.
struct EntrySelector: Sendable {
    let queue: DownloadQueue

    /// 1000 rows of the history are searched for anything but a whole ID.
    private static let rowsMax = 1000

    /// The entry in the queue that a text means.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if there is none, or there are several.
    func entry(_ text: String) async throws(DownloadError) -> QueueEntry {
        if let entry = try await self.entryIfAny(text) { return entry }
        throw Self.unknown(text)
    }

    /// - Throws: ``DownloadError`` with code `usage` if there are several.
    func entryIfAny(_ text: String) async throws(DownloadError) -> QueueEntry? {
        if let id = QueueEntry.ID(rawValue: text) { return try await self.queue.entry(id) }
        let entries = try await self.queue.entries()
        return try Self.only(
            entries.filter {
                Self.matches(text, id: $0.id.rawValue, url: $0.request.source, path: EntryRecord($0).path)
            },
            text
        ) { $0.id.rawValue }
    }

    /// The row of the history that a text means; nil if there is none. Of several downloads of one file it is the latest.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the text is the beginning of several IDs.
    func row(_ text: String) async throws(DownloadError) -> HistoryEntry? {
        if let id = QueueEntry.ID(rawValue: text), let row = try await self.queue.history(of: id) { return row }
        let rows = try await self.queue.history(limit: Self.rowsMax)
        if let row = rows.first(where: { Self.matches(text, path: $0.path.string) || $0.url == text }) { return row }
        guard Self.isPrefix(text) else { return nil }
        return try Self.only(rows.filter { $0.id.hasPrefix(text) }, text) { $0.id }
    }

    static func unknown(_ text: String) -> DownloadError {
        DownloadError(.usage, "there is no download \(text.shown)", hint: "To see all: segdl list")
    }

    private static func matches(_ text: String, id: String, url: SourceURL, path: String) -> Bool {
        self.matches(text, path: path.hasSuffix("/") ? path + Self.name(of: url) : path) || url.string == text
            || url.description == text
            || self.isPrefix(text) && id.hasPrefix(text)
    }

    /// The name that the file probably gets, while the response has not named it.
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

    private static func only<Element>(
        _ found: [Element], _ text: String, id: (Element) -> String
    ) throws(DownloadError) -> Element? {
        guard found.count > 1 else { return found.first }
        let names = found.prefix(4).map(id).joined(separator: ", ") + (found.count > 4 ? ", …" : "")
        throw DownloadError(.usage, "\(text.shown) means \(found.count) downloads: \(names)", hint: "Give one ID")
    }
}
