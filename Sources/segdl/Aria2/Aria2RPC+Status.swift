import SegmentedDownload
import SegmentedDownloadService

extension Aria2RPC {
    func tellStatus(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        let keys = try parameters.keys(1)
        let segments: [SegmentStatus]? =
            if keys.isEmpty || keys.contains("bitfield") { try await self.segments(of: found) } else { nil }
        return Aria2Status(found).object(keys, segments: segments)
    }

    private func segments(of found: Found) async throws -> [SegmentStatus] {
        switch found {
        case .entry(let entry): try await self.control.queue.segments(of: entry.id)
        case .row: []
        }
    }

    func tellActive(_ parameters: RPCParameters) async throws -> RPCValue {
        let keys = try parameters.keys(0)
        let entries = try await self.control.queue.entries().filter { $0.state == .active }
        return .array(entries.map { Aria2Status(.entry($0)).object(keys) })
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
        return .array(Self.page(list, offset: offset, count: count).map { Aria2Status($0).object(keys) })
    }

    // MARK: Parts of the status

    func getURIs(_ parameters: RPCParameters) async throws -> RPCValue {
        switch try await self.find(parameters) {
        case .entry(let entry): return .array(Aria2Status.uris(of: entry))
        case .row(let row): throw RPCError("No URI data is available for GID#\(row.id)")
        }
    }

    func getFiles(_ parameters: RPCParameters) async throws -> RPCValue {
        Aria2Status(try await self.find(parameters)).files
    }

    func getPeers(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        // As in aria2, a download with HTTP has no peers.
        if case .entry(let entry) = found, entry.state == .active { return .array([]) }
        throw RPCError("No peer data is available for GID#\(found.gid)")
    }

    func getServers(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        guard case .entry(let entry) = found, entry.state == .active else {
            throw RPCError("No active download for GID#\(found.gid)")
        }
        let sources = ([entry.request.source] + entry.request.mirrors).reduce(into: [SourceURL]()) { sources, source in
            if !sources.contains(source) { sources.append(source) }
        }
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
        let stopped = try await self.stopped().count
        return .object([
            "downloadSpeed": .digits(Aria2Status.whole(rate)), "uploadSpeed": .string("0"),
            "numActive": .digits(active.count), "numWaiting": .digits(entries.count { Self.isWaiting($0) }),
            "numStopped": .digits(stopped), "numStoppedTotal": .digits(stopped),
        ])
    }
}
