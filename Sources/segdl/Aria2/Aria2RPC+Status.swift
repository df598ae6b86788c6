import SegmentedDownload
import SegmentedDownloadService

extension Aria2RPC {
    func tellStatus(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        let keys = try parameters.keys(1)
        var status = try await self.status(of: found)
        if case .entry(let entry) = found, entry.state != .active, case .file(let path) = entry.request.destination,
            let saved = try? await SavedDownload(at: path)
        {
            status.update(saved)
        }
        return status.object(keys)
    }

    /// A download with the parts that are present and the sources in use, if it is active.
    private func status(of found: Found) async throws -> Aria2Status {
        switch found {
        case .entry(let entry):
            Aria2Status(
                entry, segments: entry.state == .active ? try await self.control.queue.segments(of: entry.id) : [])
        case .row(let row): Aria2Status(row)
        }
    }

    func tellActive(_ parameters: RPCParameters) async throws -> RPCValue {
        let keys = try parameters.keys(0)
        let entries = try await self.control.queue.entries().filter { $0.state == .active }
        var active: [RPCValue] = []
        for entry in entries { active.append(try await self.status(of: .entry(entry)).object(keys)) }
        return .array(active)
    }

    func tellWaiting(_ parameters: RPCParameters) async throws -> RPCValue {
        let waiting = try await self.control.queue.entries().filter { Self.isWaiting($0) }
        return try Self.page(waiting.map { .entry($0) }, parameters)
    }

    /// Whether an entry is in aria2's queue of waiting downloads.
    static func isWaiting(_ entry: QueueEntry) -> Bool { entry.state == .waiting || entry.state == .paused }

    func tellStopped(_ parameters: RPCParameters) async throws -> RPCValue {
        try Self.page(try await self.stopped(), parameters)
    }

    private static func page(_ list: [Found], _ parameters: RPCParameters) throws -> RPCValue {
        let (offset, count) = (try parameters.integer(0), try parameters.integer(1, atLeast: 0))
        let keys = try parameters.keys(2)
        let page = Self.page(list, offset: offset, count: count).map { found in
            switch found {
            case .entry(let entry): Aria2Status(entry, segments: [])
            case .row(let row): Aria2Status(row)
            }
        }
        return .array(page.map { $0.object(keys) })
    }

    // MARK: Parts of the status

    func getURIs(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        if case .row(let row) = found { throw RPCError("No URI data is available for GID#\(row.id)") }
        return .array(try await self.status(of: found).uris)
    }

    func getFiles(_ parameters: RPCParameters) async throws -> RPCValue {
        try await self.status(of: try await self.find(parameters)).files
    }

    func getPeers(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        // As in aria2, a download with HTTP has no peers.
        if case .entry(let entry) = found, !Aria2Status.state(of: entry).isStopped { return .array([]) }
        throw RPCError("No peer data is available for GID#\(found.gid)")
    }

    func getServers(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        guard case .entry(let entry) = found, entry.state == .active else {
            throw RPCError("No active download for GID#\(found.gid)")
        }
        let sources = Aria2Status.sources(of: entry.request)
        let used = try await self.control.queue.segments(of: entry.id).compactMap(\.source)
            .filter { sources.indices.contains($0) }
        let counts = Dictionary(used.map { ($0, 1) }, uniquingKeysWith: +)
        let rate = entry.progress?.rate ?? 0
        let servers = counts.sorted { $0.key < $1.key }.map { index, count in
            let url = RPCValue.string(sources[index].string)
            // The rate of each connection is not measured.
            let share = Aria2Status.whole(rate * Double(count) / Double(used.count))
            return RPCValue.object(["uri": url, "currentUri": url, "downloadSpeed": .digits(share)])
        }
        return .array([.object(["index": .string("1"), "servers": .array(servers)])])
    }

    func getGlobalStat() async throws -> RPCValue {
        let entries = try await self.control.queue.entries()
        let active = entries.filter { $0.state == .active }
        let rate = active.reduce(0.0) { $0 + ($1.progress?.rate ?? 0) }
        let failed = entries.count { Aria2Status.state(of: $0).isStopped }
        let total = failed + (try await self.control.queue.historyCount())
        let stopped = min(total, Self.stoppedMax)
        return .object([
            "downloadSpeed": .digits(Aria2Status.whole(rate)), "uploadSpeed": .string("0"),
            "numActive": .digits(active.count), "numWaiting": .digits(entries.count { Self.isWaiting($0) }),
            "numStopped": .digits(stopped), "numStoppedTotal": .digits(total),
        ])
    }
}
