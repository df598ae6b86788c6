import ArgumentParser
import SegmentedDownload

/// Shows one download of the background service.
struct ShowCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows one download of the background service.",
        usage: "segdl show [--json] ID",
        discussion: """
              segdl show file.iso
            """)

    @Argument(
        help: ArgumentHelp("An ID, the beginning of one, a path or a URL.", valueName: "ID"), completion: .downloadIDs)
    var id: String

    @Flag(help: "Write one JSON object.")
    var json = false

    @OptionGroup var service: ServiceOptions

    func run(_ client: ServiceClient, _ print: Printer) async throws -> ExitCode {
        let record: EntryRecord = try await client.record(self.id)
        if self.json {
            print.write(record.jsonLine)
            return .ok
        }
        print.write(EntryTable.line(record))
        print.write("  url: \(record.url.shown)")
        for mirror in record.mirrors ?? [] { print.write("  mirror: \(mirror.shown)") }
        if let attempts = record.attempts, attempts > 0 { print.write("  failed runs: \(attempts)") }
        if let priority = record.priority, priority != 0.5 { print.write("  priority: \(priority)") }
        if let hint = record.error?.hint { print.write("  to do: \(hint.shown)") }
        for (key, value) in (record.userInfo ?? [:]).sorted(by: { $0.key < $1.key }) {
            print.write("  \(key.shown): \(value.shown)")
        }
        for segment in record.segments ?? [] {
            let end = segment.end.map { "\($0)" } ?? ""
            print.write(
                "  segment \(segment.segment): \(segment.start)..<\(end) \(segment.state.rawValue) at \(segment.position)"
            )
        }
        return .ok
    }
}

/// Lists the downloads that the background service has completed or cancelled.
struct HistoryCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Lists downloads that the background service has completed or cancelled.",
        usage: "segdl history [--limit N] [--json]",
        discussion: """
            The latest comes first. segdl remove --all empties the history.

              segdl history --limit 10
            """)

    @Option(help: ArgumentHelp("At most N downloads.", valueName: "N"))
    var limit = 100

    @Flag(help: "Write one JSON object a line.")
    var json = false

    @OptionGroup var service: ServiceOptions

    mutating func validate() throws {
        if !(1...1_000_000).contains(self.limit) { throw ValidationError("--limit must be from 1 to 1000000") }
    }

    /// Rows in one request.
    private static let pageLength = 1000

    private struct Page: Decodable {
        let downloads: [EntryRecord]
    }

    func run(_ client: ServiceClient, _ print: Printer) async throws -> ExitCode {
        var offset = 0
        while offset < self.limit {
            let count = min(Self.pageLength, self.limit - offset)
            let page: Page = try await client.get("/history?limit=\(count)&offset=\(offset)")
            for record in page.downloads { print.write(self.json ? record.jsonLine : EntryTable.line(record)) }
            if page.downloads.count < count { break }
            offset += count
        }
        return .ok
    }
}

/// Ends the background service.
struct StopCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Pauses all downloads of the background service, and ends it.",
        usage: "segdl stop",
        discussion: """
            The downloads continue when the service is started again.

              segdl stop
            """)

    @OptionGroup var service: ServiceOptions

    var absence: ServiceClient.Absence { .fail }

    func run(_ client: ServiceClient, _ print: Printer) async throws -> ExitCode {
        let _: [String: Bool] = try await client.post("/stop", [String: String]())
        try await client.waitForEnd()
        return .ok
    }
}

/// Shows and changes the limits of the background service.
struct LimitsCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "limits",
        abstract: "Shows and changes the limits of the background service while it runs.",
        usage: "segdl limits [NAME=VALUE…]",
        discussion: """
            Without arguments it shows the limits that were changed. NAME=default restores the value that segdl daemon or \
            the configuration file gives. Changes stay when the service is started again. The limits are:

            \(ServiceSetting.all.map { "  \($0.name): \($0.help)" }.joined(separator: "\n"))

              segdl limits limit-rate=1M between=01:00-07:00
              segdl limits between=always
            """)

    @Argument(help: ArgumentHelp("Limits to change.", valueName: "NAME=VALUE"))
    var changes: [String] = []

    @OptionGroup var service: ServiceOptions

    mutating func validate() throws {
        for change in self.changes where !change.contains("=") {
            throw ValidationError("\(change) must be NAME=VALUE")
        }
    }

    func run(_ client: ServiceClient, _ print: Printer) async throws -> ExitCode {
        let pairs = self.changes.map { change in
            let parts = change.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
            return (parts[0], parts[1])
        }
        let texts: [String: String] =
            pairs.isEmpty
            ? try await client.get("/limits")
            : try await client.patch("/limits", Dictionary(pairs) { _, last in last })
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) { print.write("\(name.shown)=\(text.shown)") }
        if texts.isEmpty { print.say("all limits are as configured") }
        return .ok
    }
}
