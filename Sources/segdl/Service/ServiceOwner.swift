import SegmentedDownload
import SegmentedDownloadService

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Finds downloads that belong to the background service, for commands that run in the foreground.
enum ServiceOwner {
    /// 16: of more downloads the number is printed.
    private static let linesMax = 16

    /// Resumes the download of a file if the service runs and has it.
    ///
    /// - Parameters:
    ///   - text: The path of the file, its part or its manifest, or a whole ID.
    ///   - isDry: Whether nothing is resumed.
    /// - Returns: What was done; nil if the service does not run or has no such download.
    static func resume(_ text: String, isDry: Bool) async -> String? {
        try? await ServiceClient.ifRunning { client in
            guard let record = try await Self.record(text, client) else { return nil }
            return try await Self.resume(record, client, isDry: isDry)
        }
    }

    /// Resumes the download that a word means, of which there is no manifest where the word says.
    ///
    /// - Returns: What was done; nil if there is no such download.
    /// - Throws: ``DownloadError`` with code `usage` if there are several.
    static func resume(named word: String, isDry: Bool) async throws(DownloadError) -> String? {
        do {
            return try await ServiceClient.ifQueued { client in
                let records = try await client.entries(named: word)
                guard let record = try EntrySelector.only(records, word, id: { $0.id }) else { return nil }
                return try await Self.resume(record, client, isDry: isDry)
            }
        } catch let error as DownloadError {
            throw error
        } catch {
            return nil
        }
    }

    /// Resumes all paused and failed downloads of the queue.
    ///
    /// - Returns: What was done.
    static func resumeAll(isDry: Bool) async -> [String] {
        let records = try? await ServiceClient.ifQueued { client in
            var records: [EntryRecord] = []
            try await client.entries("?state=paused,failed") { records += $0 }
            guard !records.isEmpty, !isDry else { return records }
            let answer: EntrySelection.Answer = try await client.post(
                "/downloads/resume", EntrySelection(ids: records.map(\.id)))
            let changed = Set(answer.changed)
            return records.filter { changed.contains($0.id) }
        }
        guard let records, records.count > Self.linesMax else {
            return (records ?? []).map { Self.line($0, isDry: isDry) }
        }
        return [
            "\(records.count) downloads \(isDry ? "would " : "")continue in the background. To watch them: segdl attach --all"
        ]
    }

    private static func resume(_ record: EntryRecord, _ client: ServiceClient, isDry: Bool) async throws -> String {
        if record.isAtRest, !isDry {
            let _: EntrySelection.Answer = try await client.post("/downloads/resume", EntrySelection(ids: [record.id]))
        }
        return Self.line(record, isDry: isDry)
    }

    private static func line(_ record: EntryRecord, isDry: Bool) -> String {
        let verb = isDry ? "would continue" : "continues"
        return "\(TransferFile(record).path.shown) \(verb) in the background. To watch it: segdl attach \(record.id)"
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
        let path = EntrySelector.absolute(text, in: FileManager.default.currentDirectoryPath)
        for word in [path] + (QueueEntry.ID(rawValue: text) == nil ? [] : [text]) {
            let records = try await client.entries(named: word)
            if records.count == 1 { return records[0] }
        }
        return nil
    }
}
