import SegmentedDownload
import SegmentedDownloadCore
import SegmentedDownloadService

extension Aria2RPC {
    /// What a GID means.
    enum Found: Sendable {
        /// An entry of the queue.
        case entry(QueueEntry)
        /// A row of the history.
        case row(HistoryEntry)

        var gid: String {
            switch self {
            case .entry(let entry): entry.id.rawValue
            case .row(let row): row.id
            }
        }
    }

    /// 1000: aria2's default of `max-download-result`. Older rows of the history are found by their whole GID only.
    static let stoppedMax = 1000

    /// The download of a GID: sixteen hexadecimal digits, or the beginning of one that no other download has.
    func find(_ parameters: RPCParameters) async throws -> Found {
        let text = try parameters.string(0)
        let shown = text.printable(limit: 32)
        guard (1...16).contains(text.utf8.count), text.utf8.allSatisfy({ Self.isHexDigit($0) }) else {
            throw RPCError("Invalid GID \(shown)")
        }
        let missing = RPCError("GID \(shown) is not found")
        if let id = QueueEntry.ID(rawValue: text) {
            if let entry = try await self.control.queue.entry(id) { return .entry(entry) }
            guard let row = try await self.control.queue.history(of: id) else { throw missing }
            return .row(row)
        }
        let start = text.lowercased()
        let entries = try await self.control.queue.entries().filter { $0.id.rawValue.hasPrefix(start) }
        let rows = try await self.control.queue.history(limit: Self.stoppedMax).filter { $0.id.hasPrefix(start) }
        let found = entries.map { Found.entry($0) } + rows.map { .row($0) }
        guard let first = found.first else { throw missing }
        // An entry can leave the queue between the two reads, and is then found twice.
        guard found.allSatisfy({ $0.gid == first.gid }) else { throw RPCError("GID \(shown) is not unique") }
        return first
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    /// The downloads that are over for aria2, oldest first: failed entries, and then the latest rows of the history.
    func stopped() async throws -> [Found] {
        let entries = try await self.control.queue.entries().filter { Aria2Status.state(of: $0).isStopped }
        let rows = try await self.control.queue.history(limit: max(Self.stoppedMax - entries.count, 0))
        // An entry that left the queue between the two reads is listed once.
        let ids = Set(rows.map(\.id))
        return entries.filter { !ids.contains($0.id.rawValue) }.map { .entry($0) } + rows.reversed().map { .row($0) }
    }

    /// The page of a list, as aria2's manual describes it: -1 is the last element, and from a negative offset the page
    /// goes backwards.
    static func page<Element>(_ list: [Element], offset: Int, count: Int) -> [Element] {
        guard count > 0, offset < list.count else { return [] }
        guard offset < 0 else { return Array(list[offset...].prefix(count)) }
        guard offset >= -list.count else { return [] }
        return Array(list[...(offset + list.count)].suffix(count).reversed())
    }

    /// Does something with one entry.
    func perform(
        _ action: QueueControl.Action, _ id: QueueEntry.ID, to place: Int? = nil,
        options: [String: Submission.OptionValue]? = nil
    ) async throws {
        let selection = EntrySelection(ids: [id.rawValue], to: place, options: options)
        let answer = try await self.control.perform(action, on: selection)
        if let failure = answer.errors.values.first { throw RPCError(failure.message) }
    }
}
