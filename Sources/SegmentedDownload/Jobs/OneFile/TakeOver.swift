package import SegmentedDownloadCore

/// How a task whose range is complete fetches the ranges of tasks that make no progress.
///
/// The range is divided into pieces, so that several tasks fetch it together. Each piece is a download with a manifest, a
/// lock and a record of its own, in files that no other run uses, and claims only what its run has written or read back.
///
/// The task whose range it is may still run, or come back at any time, and write to the same places. That is harmless
/// because it writes the same bytes, and nothing beside them (``PageFragments``): before a task writes its first byte, a validator must prove
/// that the server sends the plan's version (``DownloadRequest/requiredResource``), and with several sources no range is taken over.
/// Besides, all ranges are read back before the file is put into place.
package struct TakeOver: Sendable {
    /// How far the files of others have come.
    private struct Watch {
        private struct State: Hashable {
            let inode: UInt64
            let length: Int64
            let modified: Int64
        }

        private var progress = ProgressWatch<String, Int64>()
        /// What was last read of each manifest.
        private var known: [String: (state: State, bytesDone: Int64)] = [:]

        /// For how long files have shown no more bytes than before. A task that is started again and again, and fetches nothing,
        /// writes its manifest each time.
        mutating func idleTime(of key: String, _ manifests: [DestinationPaths], in file: SharedFile) throws -> Duration
        {
            let bytes = try manifests.reduce(0) { $0 + (try self.bytesDone($1, in: file)) }
            return self.progress.idleTime(of: key, bytes, now: file.clock.now)
        }

        private mutating func bytesDone(_ paths: DestinationPaths, in file: SharedFile) throws -> Int64 {
            let before = self.known[paths.manifest]
            guard let status = try file.storage.status(of: paths.manifest) else { return before?.bytesDone ?? 0 }
            let state = State(inode: status.inode, length: status.length, modified: status.modified)
            if let before, before.state == state { return before.bytesDone }
            let saved = try? SavedDownload(reading: paths.destination, storage: file.storage)
            let bytes = max(saved?.bytesDone ?? 0, before?.bytesDone ?? 0)
            self.known[paths.manifest] = (state, bytes)
            return bytes
        }
    }

    private let file: SharedFile
    private let plan: SharedFilePlan
    private let request: DownloadRequest
    private let resource: RemoteResource
    private let taker: Shard
    /// Random. It names the run's files.
    private let id: UInt64
    private let patience: Duration

    /// - Parameters:
    ///   - request: The request for the complete file.
    ///   - resource: What the server has now. The caller has compared it with the plan.
    ///   - id: Random.
    ///   - patience: For how long a task must have recorded no progress.
    /// - Throws: ``DownloadError`` if two tasks could write different bytes to one place: with code `usage` if the file has
    ///   several sources, which are compared in samples only, `protocol` if no validator proves its version.
    package init(
        of file: SharedFile, _ plan: SharedFilePlan, _ request: DownloadRequest, _ resource: RemoteResource,
        by taker: Shard, id: UInt64, after patience: Duration
    ) throws(DownloadError) {
        guard request.sources.count == 1, plan.sources.count == 1 else {
            throw DownloadError(
                .usage, "the range of a task can be taken over only if the file has one source",
                hint:
                    "To start over with one source, stop all tasks, remove \(file.directory.printable), and run them again"
            )
        }
        guard plan.resource(of: 0..<plan.division.length, as: resource) != nil else {
            throw DownloadError(
                .protocol,
                "no ETag or Last-Modified proves that all tasks fetch the same version, so none can take over the range of another"
            )
        }
        (self.file, self.plan, self.request, self.resource) = (file, plan, request, resource)
        (self.taker, self.id, self.patience) = (taker, id, patience)
    }

    private var run: String { String(self.id, radix: 16) }

    /// Waits for the other tasks, and fetches pieces of the ranges of those that record no progress, until the file is in place.
    ///
    /// - Parameters:
    ///   - note: Called with the piece before it is fetched.
    ///   - fetch: Fetches a file, and returns whether that succeeded.
    /// - Returns: Nil if `fetch` failed.
    package func run(
        note: (RangePiece) -> Void, fetch: (DownloadRequest) async throws -> Bool
    ) async throws -> SharedFile.Outcome? {
        var watch = Watch()
        while true {
            let outcome = try await self.file.assemble(
                self.plan, digests: self.request.digests, ifExists: self.request.ifExists, run: self.id)
            guard case .waiting(let shards) = outcome else { return outcome }
            guard let piece = try self.nextPiece(of: shards, &watch) else {
                try await self.file.clock.sleep(until: self.file.clock.now + self.interval)
                continue
            }
            note(piece)
            do {
                guard try await self.complete(piece, fetch) || self.file.isAssembled(self.plan) else { return nil }
            } catch {
                // If another task has completed the file meanwhile, the files of this one are gone.
                guard try self.file.isAssembled(self.plan) else { throw error }
            }
        }
    }

    /// Four looks in the time that a task may be silent. At most one a second, because each lists the directory, and asks for
    /// the status of the manifests of unfinished tasks, and at least one in 10 s, so that the file's completion is noticed.
    private var interval: Duration { min(max(self.patience / 4, .seconds(1)), .seconds(10)) }

    // MARK: Choosing

    /// A piece that no task makes progress with; nil if there is none.
    private func nextPiece(of shards: [Shard], _ watch: inout Watch) throws -> RangePiece? {
        let files = try self.file.names().compactMap { SharedFile.PieceFile($0) }
        let records = self.file.pieceRecords(files, self.plan)
        var free: [RangePiece] = []
        for shard in shards {
            let idle = try watch.idleTime(of: shard.fileName, [self.file.paths(of: shard)], in: self.file)
            for piece in self.ordered(self.plan.division.pieces(of: shard)) where !self.isComplete(piece, records) {
                let others = Set(files.filter { $0.piece == piece && $0.run != self.run }.map(\.run)).sorted()
                    .map { self.file.paths(of: piece, run: $0) }
                // All are looked at, so that the time of each is known.
                let isFree =
                    try others.isEmpty
                    || watch.idleTime(of: "\(piece.fileName) \(others.count)", others, in: self.file) >= self.patience
                if idle >= self.patience, isFree { free.append(piece) }
            }
        }
        return free.first
    }

    private func isComplete(_ piece: RangePiece, _ records: [RangePiece: [FinishedRecord]]) -> Bool {
        let hasDigest = !self.plan.digests.isEmpty
        return records[piece]?.contains {
            self.plan.division.accepts($0, of: piece, self.plan.resource, hasDigest: hasDigest)
        } ?? false
    }

    /// The pieces in an order in which each task begins with another one.
    private func ordered(_ pieces: [RangePiece]) -> [RangePiece] {
        let first = pieces.count * (self.taker.number - 1) / self.taker.count
        return Array(pieces[first...] + pieces[..<first])
    }

    // MARK: Fetching

    private func complete(_ piece: RangePiece, _ fetch: (DownloadRequest) async throws -> Bool) async throws -> Bool {
        let range = self.plan.division.range(of: piece)
        let paths = self.file.paths(of: piece, run: self.run)
        let window = self.file.window(range, part: paths.part, self.plan)
        var task = self.file.request(for: window, to: paths, sharing: self.taker, self.request)
        task.requiredResource = self.plan.resource(of: range, as: self.resource)
        // Bytes that were read back are then written again and synced before they count. They may be in the cache of a
        // machine that has failed.
        task.options.syncPolicy = .checkpoint
        try await self.file.begin(task, of: piece.shard, self.plan, as: self.resource, id: self.id)
        guard try await fetch(task) else { return false }
        let hasDigest = !self.plan.digests.isEmpty
        guard let record = try self.file.record(at: paths.destination, self.plan),
            self.plan.division.accepts(record, of: piece, self.plan.resource, hasDigest: hasDigest)
        else {
            try? self.file.storage.remove(paths.destination)
            throw SharedFilePlan.changed(
                "the record of a piece of the range of task \(piece.shard) is not of the plan's version",
                directory: self.file.directory)
        }
        return true
    }
}
