import ArgumentParser
import SegmentedDownload
import SegmentedDownloadService

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Lists the queue of the background service.
struct ListCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists the downloads of the background service.",
        usage: "segdl list [--json] [--watch] [--state STATE]",
        discussion: """
              segdl list
              segdl list --state failed
            """)

    @Flag(help: "Write one JSON object a line.")
    var json = false

    @Flag(help: "Show the list and its changes until no download waits or runs.")
    var watch = false

    @Option(
        help: ArgumentHelp(
            "Only downloads in this state: \(QueueEntry.State.allCases.map(\.rawValue).joined(separator: ", ")).",
            valueName: "STATE"))
    var state: String?

    @OptionGroup var service: ServiceOptions

    mutating func validate() throws {
        if self.json, self.watch { throw ValidationError("--json and --watch exclude each other") }
        if let state = self.state, QueueEntry.State(rawValue: state) == nil {
            throw ValidationError(
                "the state must be \(QueueEntry.State.allCases.map(\.rawValue).joined(separator: ", "))")
        }
    }

    func run(_ client: ServiceClient, _ print: Printer) async throws -> ExitCode {
        guard self.watch else {
            var count = 0
            try await client.entries(self.query) { records in
                count += records.count
                for line in self.json ? records.map(\.jsonLine) : EntryTable.lines(records) { print.write(line) }
            }
            if count == 0, !self.json { for line in EntryTable.lines([]) { print.write(line) } }
            return .ok
        }
        let terminal = Terminal(assuming: STDERR_FILENO)
        let console = Console(print.errors) { terminal.size.columns }
        let signals = SignalSource()
        defer { signals.cancel() }
        let events = signals.events
        return try await withThrowingTaskGroup(of: ExitCode.self) { tasks in
            tasks.addTask {
                for await case .stop in events { break }
                return .ok
            }
            tasks.addTask {
                while true {
                    let records = try await self.records(client)
                    let size = terminal.size
                    let lines = EntryTable.lines(records).map { $0.clipped(to: max(size.columns - 1, 1)) }
                    guard records.contains(where: { !$0.isAtRest }) else {
                        console.show([])
                        for line in EntryTable.lines(records) { print.write(line) }
                        return .ok
                    }
                    console.show(Array(lines.prefix(max(size.rows - 1, 1))))
                    try await Task.sleep(for: .milliseconds(500))
                }
            }
            defer { tasks.cancelAll() }
            return try await tasks.next() ?? .ok
        }
    }

    private var query: String { self.state.map { "?state=\($0)" } ?? "" }

    private func records(_ client: ServiceClient) async throws -> [EntryRecord] {
        var records: [EntryRecord] = []
        try await client.entries(self.query) { records += $0 }
        return records
    }
}

/// A list of entries for people.
enum EntryTable {
    static func lines(_ records: [EntryRecord]) -> [String] {
        guard !records.isEmpty else { return ["There are no downloads."] }
        return records.map { Self.line($0) }
    }

    /// `12ca143763c28a64  active      3.10 of 4.00 GiB  77%  12.0 MiB/s  1:20 left  /srv/file.iso`
    static func line(_ record: EntryRecord) -> String {
        var parts = [record.id, record.state.padded(to: 9)]
        if let done = record.bytesDone, let total = record.bytesTotal {
            let percent = total > 0 ? Int(Double(done) / Double(total) * 100) : 100
            parts.append(
                record.isAtRest && done == total
                    ? "\(ByteCount(total))"
                    : "\(ByteCount(done).description(of: ByteCount(total)))  \(percent)%")
        } else if let done = record.bytesDone, done > 0 {
            parts.append("\(ByteCount(done))")
        }
        if let rate = record.rate { parts.append(ByteCount.perSecond(rate)) }
        if let eta = record.eta { parts.append("\(Seconds(.seconds(eta)).clock) left") }
        parts.append(record.path.hasSuffix("/") ? record.url.shown : record.path.shown)
        if let error = record.error { parts.append("(\(error.code): \(error.message))".shown) }
        return parts.joined(separator: "  ")
    }
}
