package import SegmentedDownloadCore

/// One task of a shared file, from the question to the server until the file is in place or the task has nothing to do.
package struct SharedFileTask: Sendable {
    package enum Ending: Sendable {
        /// The task has fetched its range, or had nothing to fetch.
        case ended(SharedFile.Outcome, SharedFilePlan)
        /// A fetch failed. What was fetched is kept.
        case failed
        /// The destination is the server's file already.
        case alreadyComplete(VerifiedFile)
        /// The destination is another file, which the request does not replace.
        case different
        /// The server's file has no bytes, so there is nothing to divide.
        case empty
        /// The file is being fetched by another number of tasks, of which some have not completed their ranges.
        case divided(SharedFilePlan)
    }

    /// What the server has: the file's version, with the digests that the server states, and its length in bytes.
    package typealias Found = (resource: RemoteResource, length: Int64)

    package let file: SharedFile
    package let shard: Shard
    /// The request for the complete file.
    package let request: DownloadRequest
    private let patience: Duration?
    private let selection: RequestSelection.Values
    private let id: UInt64
    private let machine: (host: String, process: Int32, random: UInt64)

    /// - Parameters:
    ///   - patience: After which time without progress the ranges of other tasks are taken over; nil for never.
    ///   - selection: What the request selects the representation with.
    ///   - id: Random. It names the shared file if this task is the first, and the files of a range that is taken over.
    ///   - machine: The machine's name, the process's number, and a random number that no other run has.
    package init(
        _ shard: Shard, of file: SharedFile, _ request: DownloadRequest, takingOverAfter patience: Duration?,
        selection: RequestSelection.Values = [:], id: UInt64, machine: (host: String, process: Int32, random: UInt64)
    ) {
        (self.file, self.shard, self.request, self.patience) = (file, shard, request, patience)
        (self.selection, self.id, self.machine) = (selection, id, machine)
    }

    /// Fetches the task's range, and puts the file into place if the task is the last.
    ///
    /// - Parameters:
    ///   - probe: Asks the server.
    ///   - note: Called with remarks for the user.
    ///   - noteTakeOver: Called with a piece of another task's range before it is fetched.
    ///   - fetch: Fetches a file, and returns how that has ended.
    package func run(
        probe: () async throws -> Found, note: (String) -> Void, noteTakeOver: (RangePiece, SharedFilePlan) -> Void,
        fetch: (DownloadRequest) async throws -> ShardStatus.State
    ) async throws -> Ending {
        let (resource, length) = try await probe()
        let leftover = try self.file.leftover()
        let ending = try length > 0 ? self.settled(resource, leftover) : .empty
        if let leftover { try await self.file.clear(leftover) }
        if let ending { return ending }
        let plan = try await self.file.begin(
            id: self.id, self.request, of: resource, count: self.shard.count, length: length, selection: self.selection)
        try plan.check(
            resource, given: self.request.digests, selection: self.selection, directory: self.file.directory)
        guard plan.division.count == self.shard.count else {
            let isComplete = try self.file.tasks(plan).allSatisfy(\.isComplete)
            return isComplete ? try await self.assemble(plan) : .divided(plan)
        }
        let takeOver = try self.patience.map {
            try TakeOver(of: self.file, plan, self.request, resource, by: self.shard, id: self.id, after: $0)
        }
        // Others may have fetched the range and completed the file meanwhile.
        guard try await self.fetchRange(plan, resource, note: note, fetch) || self.file.isAssembled(plan) else {
            return .failed
        }
        guard let takeOver else { return try await self.assemble(plan) }
        let outcome = try await takeOver.run(
            note: { noteTakeOver($0, plan) }, fetch: { try await fetch($0) == .finished })
        return outcome.map { .ended($0, plan) } ?? .failed
    }

    private func assemble(_ plan: SharedFilePlan) async throws -> Ending {
        let outcome = try await self.file.assemble(
            plan, digests: self.request.digests, ifExists: self.request.ifExists, run: self.id)
        return .ended(outcome, plan)
    }

    /// The ending if there is nothing to do, because the destination exists; nil otherwise.
    ///
    /// - Parameter leftover: The plan that has put the destination into place, if it is still there. That it did says nothing
    ///   about what this request wants.
    private func settled(
        _ resource: RemoteResource, _ leftover: SharedFilePlan?
    ) throws(DownloadError) -> Ending? {
        guard self.request.ifExists != .overwrite,
            let existing = try self.file.existing(
                resource, digests: self.request.digests, selection: self.selection, leftover: leftover)
        else { return nil }
        if case .complete(let file) = existing, self.request.ifExists != .fail {
            // The file is complete whether or not this succeeds.
            try? self.file.removeRest()
            return .alreadyComplete(file)
        }
        return self.request.ifExists == .update ? nil : .different
    }

    /// - Returns: Whether the task's range is complete.
    private func fetchRange(
        _ plan: SharedFilePlan, _ resource: RemoteResource, note: (String) -> Void,
        _ fetch: (DownloadRequest) async throws -> ShardStatus.State
    ) async throws -> Bool {
        let (file, shard, clock) = (self.file, self.shard, self.file.clock)
        let range = plan.division.range(of: shard)
        guard !range.isEmpty else {
            note("the file is too short for \(shard.count) tasks: \(shard) has nothing to fetch")
            return true
        }
        if try file.isComplete(shard, plan) { return true }
        // One that cannot be read is of no use.
        try await file.removeRecord(of: shard)
        let run = try await ShardRun(
            of: shard, in: file.job, JobSettings(directory: file.paths.name), machine: self.machine, clock: clock,
            waiting: note)
        run.update { ($0.bytesTotal, $0.bytesDone) = (Int64(range.count), 0) }
        let task = file.request(for: shard, plan, of: self.request, from: resource)
        try await file.begin(task, of: shard, plan, as: resource, id: self.id)
        let state = try await run.reporting(
            clock, prepare: { run.update { $0.bytesDone = file.bytesDone(of: shard) } }
        ) { try await fetch(task) }
        func end(_ state: ShardStatus.State) async {
            run.update { $0.failed = state == .failed ? 1 : 0 }
            try? await run.end(state, isComplete: true, now: Double(clock.secondsSinceEpoch))
        }
        do {
            let record = try file.record(of: shard, plan)
            if state == .finished, let record {
                try await file.check(record, of: shard, plan, hasDigest: !self.request.digests.isEmpty)
            }
            run.update { $0.bytesDone = record?.length ?? file.bytesDone(of: shard) }
        } catch {
            await end(.failed)
            throw error
        }
        await end(state)
        return state == .finished
    }
}
