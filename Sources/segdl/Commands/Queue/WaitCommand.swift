import ArgumentParser
import NIOCore
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Waits for downloads of the background service.
struct WaitCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait", abstract: "Waits until downloads of the background service have ended.",
        usage: "segdl wait ID…|--all",
        discussion: """
            The exit status is that of a run in the foreground: 0 if all are complete, that of its failure for a single \
            download, 16 if some of several have failed. A paused download has not ended.

              segdl wait file.iso
            """)

    @OptionGroup var entries: EntryArguments
    @OptionGroup var service: ServiceOptions

    func run(_ client: ServiceClient, _ print: Printer) async throws -> ExitCode {
        var ids = self.entries.selection.ids ?? []
        if self.entries.all {
            try await client.entries { ids += $0.map(\.id) }
        }
        var failures: [ExitCode] = []
        for id in ids {
            let record = try await Self.end(of: id, client)
            guard record.state != "completed" else { continue }
            if let error = record.error {
                print.errors.send(FailureLine(DownloadError(error), of: TransferFile(record).path).text + "\n")
            }
            failures.append(record.error.flatMap { ExitCode(rawValue: $0.exit) } ?? .internal)
        }
        return ids.count > 1 && !failures.isEmpty ? .partial : failures.first ?? .ok
    }

    /// The entry once it has ended.
    private static func end(of id: String, _ client: ServiceClient) async throws -> EntryRecord {
        var record = try await client.record(id)
        // Longer than the service waits before it answers.
        while !["completed", "cancelled", "failed"].contains(record.state) {
            record = try await client.get("/downloads/\(record.id)?until=failed", waiting: .seconds(60))
        }
        return record
    }
}

/// Shows the progress of a download of the background service.
struct AttachCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "attach",
        abstract: "Shows the progress of downloads of the background service, as if they ran in the foreground.",
        usage: "segdl attach [--progress bar|map|log] [--json] ID…|--all",
        discussion: """
            It ends when the downloads have ended or are paused, with the exit status of a run in the foreground. Ctrl-C \
            ends the display; the downloads continue.

              segdl attach file.iso
              segdl attach --all
            """)

    @OptionGroup var entries: EntryArguments
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup var service: ServiceOptions

    func run(_ client: ServiceClient, _ print: Printer) async throws -> ExitCode {
        var records: [EntryRecord] = []
        let summary: ServiceRecord = try await client.get("")
        if self.entries.all {
            try await client.entries { records += $0.filter { !$0.isAtRest } }
        } else {
            for id in self.entries.selection.ids ?? [] {
                records.append(try await client.record(id))
            }
        }
        guard !records.isEmpty else {
            print.say("nothing runs")
            return .ok
        }
        let signals = SignalSource()
        defer { signals.cancel() }
        let events = signals.events
        return try await withThrowingTaskGroup(of: ExitCode?.self) { tasks in
            let attachment = Attachment(output: self.output, client: client, errors: print.errors, records: records)
            tasks.addTask { try await attachment.run(after: summary.event) }
            tasks.addTask {
                for await event in events {
                    switch event {
                    case .resize: attachment.redraw()
                    case .stop: return ExitCode.ok
                    }
                }
                return nil
            }
            defer {
                tasks.cancelAll()
                attachment.end()
            }
            return try await tasks.next().flatMap { $0 } ?? .ok
        }
    }
}
