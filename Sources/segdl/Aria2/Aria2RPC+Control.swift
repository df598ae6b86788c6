import SegmentedDownload
import SegmentedDownloadService

extension Aria2RPC {
    // MARK: Pausing and removing

    /// Pauses a download. As in aria2, one that was active is then in front of those that wait.
    func pause(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        guard case .entry(let entry) = found, entry.state == .waiting || entry.state == .active else {
            throw RPCError("GID#\(found.gid) cannot be paused now")
        }
        try await self.perform(.pause, entry.id)
        // It may have completed meanwhile.
        if entry.state == .active { _ = try? await self.move(entry.id, to: 0) }
        return .string(found.gid)
    }

    /// Resumes a paused download. Unlike aria2, it also tries a failed one again.
    func unpause(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        guard case .entry(let entry) = found, entry.state == .paused || entry.state == .failed else {
            throw RPCError("GID#\(found.gid) cannot be unpaused now")
        }
        try await self.perform(.resume, entry.id)
        return .string(found.gid)
    }

    func pauseAll() async throws -> RPCValue {
        let active = try await self.control.queue.entries().filter { $0.state == .active }
        _ = try await self.control.perform(.pause, on: EntrySelection(all: true))
        for entry in active.reversed() { _ = try? await self.move(entry.id, to: 0) }
        return Self.ok
    }

    /// Resumes paused downloads, and not failed ones.
    func unpauseAll() async throws -> RPCValue { try await self.performOnAll(.resume) { $0.state == .paused } }

    /// Takes a download out of the queue. Its partial file stays, as in aria2.
    func remove(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        guard case .entry(let entry) = found, !Aria2Status.state(of: entry).isStopped else {
            throw RPCError("Active Download not found for GID#\(found.gid)")
        }
        try await self.perform(.cancel, entry.id)
        return .string(found.gid)
    }

    func removeDownloadResult(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        switch found {
        case .entry(let entry) where entry.state == .failed: break
        case .row: break
        case .entry: throw RPCError("Could not remove download result of GID#\(found.gid)")
        }
        let answer = try await self.control.perform(.remove, on: EntrySelection(ids: [found.gid]))
        if let failure = answer.errors.values.first { throw RPCError(failure.message) }
        return Self.ok
    }

    /// Removes failed entries and the whole history.
    func purgeDownloadResult() async throws -> RPCValue {
        _ = try await self.performOnAll(.remove) { $0.state == .failed }
        try await self.control.queue.deleteHistory(of: nil)
        return Self.ok
    }

    private func performOnAll(
        _ action: QueueControl.Action, where applies: (QueueEntry) -> Bool
    ) async throws -> RPCValue {
        let ids = try await self.control.queue.entries().filter(applies).map(\.id.rawValue)
        _ = try await self.control.perform(action, on: EntrySelection(ids: ids))
        return Self.ok
    }

    // MARK: The order

    func changePosition(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        let (offset, origin) = (try parameters.integer(1), try parameters.string(2))
        let waiting = try await self.control.queue.entries().filter { Self.isWaiting($0) }.map(\.id)
        guard case .entry(let entry) = found, let current = waiting.firstIndex(of: entry.id) else {
            throw RPCError("GID#\(found.gid) not found in the waiting queue.")
        }
        let start: Int
        switch origin {
        case "POS_SET": start = 0
        case "POS_CUR": start = current
        case "POS_END": start = waiting.count - 1
        default: throw RPCError("Illegal argument.")
        }
        // Limited first, so that the sum cannot overflow.
        let place = start + min(max(offset, -waiting.count), waiting.count)
        return .int(Int64(try await self.move(entry.id, to: place)))
    }

    /// Moves an entry to a place among the waiting ones, counted from 0. A place outside is the nearest end.
    ///
    /// - Returns: The place.
    func move(_ id: QueueEntry.ID, to place: Int) async throws -> Int {
        let others = try await self.control.queue.entries().filter { $0.id != id }
        // The places of the waiting entries among all, because the queue also has active and failed ones.
        let places = others.indices.filter { Self.isWaiting(others[$0]) }
        let place = min(max(place, 0), places.count)
        let target = place < places.count ? places[place] : places.last.map { $0 + 1 } ?? others.count
        try await self.perform(.move, id, to: target)
        return place
    }
}
