import SegmentedDownload
import SegmentedDownloadService

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Finds out whether a file belongs to the background service, for commands that run in the foreground.
enum ServiceOwner {
    /// Resumes the download of a file if it is in the service's queue.
    ///
    /// - Parameter text: The path of the file, its part or its manifest, or an ID.
    /// - Returns: What was done; nil if the service does not run or has no such download.
    static func resume(_ text: String) async -> String? {
        try? await ServiceClient.ifRunning { client in
            guard let record = try await Self.record(text, client) else { return nil }
            if record.isAtRest {
                let _: EntrySelection.Answer = try await client.post(
                    "/downloads/resume", EntrySelection(ids: [record.id]))
            }
            return
                "\(TransferFile(record).path.shown) continues in the background. To watch it: segdl attach \(record.id)"
        }
    }

    /// What to say of files that another process has, if that is the service.
    static func remarks(on summary: TransferSummary) async -> [String] {
        let paths = summary.failed.filter { $0.error.code == .exists }.map(\.file.path)
        guard !paths.isEmpty else { return [] }
        let remarks = try? await ServiceClient.ifRunning { client in
            var remarks: [String] = []
            // A few, because each costs a request, and a list may have many such files.
            for path in paths.prefix(16) {
                guard let record = try? await Self.record(path, client) else { continue }
                remarks.append(
                    "\(path.shown) is a download of the background service. To watch it: segdl attach \(record.id)")
            }
            return remarks
        }
        return remarks ?? []
    }

    /// The entry of the queue for a file, or with a whole ID; nil if there is none. A name or the beginning of an ID would
    /// also find the file of another directory.
    private static func record(_ text: String, _ client: ServiceClient) async throws -> EntryRecord? {
        let suffixes = [".segdl-part", ".segdl"]
        let file = suffixes.first { text.hasSuffix($0) }.map { String(text.dropLast($0.count)) } ?? text
        let path = FilePath(FileManager.default.currentDirectoryPath).pushing(FilePath(file)).lexicallyNormalized()
        for name in [path.string] + (QueueEntry.ID(rawValue: text) == nil ? [] : [text]) {
            let record: EntryRecord? = try? await client.get("/downloads" + ServiceClient.component(name))
            // A row of the history owns no file.
            if let record, record.ended == nil { return record }
        }
        return nil
    }
}
