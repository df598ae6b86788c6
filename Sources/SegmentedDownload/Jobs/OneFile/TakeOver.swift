package import SegmentedDownloadCore

/// How a task whose range is complete fetches the ranges of tasks that make no progress.
///
/// The range is divided into pieces, so that several tasks fetch it together. Each piece is a download with a manifest, a
/// lock and a record of its own, in files that no other run uses, and claims only what its run has written or read back.
///
/// The task whose range it is may still run, or come back at any time, and write to the same places. That is harmless
/// because it writes the same bytes: every task that may take part has one source, and a validator proves that its bytes are
/// of the plan's version.
package struct TakeOver: Sendable {
    private struct FileState: Hashable {
        let name: String
        let inode: UInt64
        let length: Int64
        let modified: Int64
    }

    private typealias Watch = ProgressWatch<String, [FileState]>

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
        guard case .same = plan.resource.verdict(on: resource) else {
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
            let outcome = try await self.file.assemble(self.plan, digests: self.request.digests)
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

    /// Four looks in the time that a task may be silent. At most one a second, because each asks for the status of every
    /// unfinished task, and at least one in 10 s, so that the file's completion is noticed.
    private var interval: Duration { min(max(self.patience / 4, .seconds(1)), .seconds(10)) }

    // MARK: Choosing

    /// A piece that no task makes progress with; nil if there is none.
    private func nextPiece(of shards: [Shard], _ watch: inout Watch) throws -> RangePiece? {
        let now = self.file.clock.now
        let files = try self.file.names().compactMap { SharedFile.PieceFile($0) }
        let records = self.file.pieceRecords(files, self.plan)
        var free: [RangePiece] = []
        for shard in shards {
            let manifest = DestinationPaths(directory: "", name: shard.fileName).manifest
            let idle = watch.idleTime(of: shard.fileName, try self.states([manifest]), now: now)
            for piece in self.ordered(self.plan.division.pieces(of: shard)) where !self.isComplete(piece, records) {
                let others = files.filter { $0.piece == piece && $0.run != self.run }.map(\.name).sorted()
                // All are looked at, so that the time of each is known.
                let isFree =
                    try others.isEmpty
                    || watch.idleTime(of: piece.fileName, self.states(others), now: now) >= self.patience
                if idle >= self.patience, isFree { free.append(piece) }
            }
        }
        return free.first
    }

    private func states(_ names: [String]) throws(StorageError) -> [FileState] {
        var states: [FileState] = []
        for name in names {
            guard let status = try self.file.storage.status(of: "\(self.file.directory)/\(name)") else { continue }
            states.append(
                FileState(name: name, inode: status.inode, length: status.length, modified: status.modified))
        }
        return states
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
        let window = FileWindow(
            part: paths.part, data: self.file.dataPath(of: self.plan.id), inode: self.plan.inode, range: range,
            completeLength: self.plan.division.length)
        var task = self.file.request(for: window, to: paths, sharing: self.taker, self.request)
        // Bytes that were read back are then written again and synced before they count. They may be in the cache of a
        // machine that has failed.
        task.options.syncPolicy = .checkpoint
        try await self.begin(piece, window, paths, task)
        guard try await fetch(task) else { return false }
        let hasDigest = !self.plan.digests.isEmpty
        guard let record = try self.file.record(at: paths.destination),
            self.plan.division.accepts(record, of: piece, self.plan.resource, hasDigest: hasDigest)
        else {
            try? self.file.storage.remove(paths.destination)
            throw SharedFilePlan.changed(
                "the record of a piece of the range of task \(piece.shard) is not of the plan's version",
                directory: self.file.directory)
        }
        return true
    }

    /// Begins the download of a piece with what others have claimed of it, if anything. The claims are not durable, so the
    /// download reads the bytes back and compares their checksums.
    private func begin(
        _ piece: RangePiece, _ window: FileWindow, _ paths: DestinationPaths, _ task: DownloadRequest
    ) async throws {
        guard try self.file.storage.status(of: paths.part) == nil else { return }
        let claims = try self.claims(of: piece)
        guard !claims.isEmpty, let resource = self.resource(of: window.range) else { return }
        let storage = WindowStorage(window, in: self.file.storage)
        let header = Manifest.Header(
            id: self.id, resource: resource, completeLength: window.length, device: 0, inode: 0, bootID: "",
            sources: task.recordedSources(reference: .first), digests: [], label: task.label(inheriting: nil))
        let part = PartialFile(
            paths: paths, file: try PartialFile.createFile(paths, in: storage, noteUnlocked: {}), storage: storage,
            header: header, claims: claims)
        do throws(StorageError) {
            try await part.writeManifest(durableCount: 0)
        } catch {
            try? part.discard()
            throw error
        }
        part.close()
    }

    /// What the manifests of the range's task and of other runs claim of a piece, ordered and disjoint.
    private func claims(of piece: RangePiece) throws -> [Claim] {
        let range = self.plan.division.range(of: piece)
        var found = self.claims(
            in: self.file.paths(of: piece.shard).manifest, self.plan.division.range(of: piece.shard), to: range)
        for other in try self.file.names().compactMap({ SharedFile.PieceFile($0) })
        where other.piece == piece && other.kind == .manifest {
            found += self.claims(in: "\(self.file.directory)/\(other.name)", range, to: range)
        }
        var (claims, reached) = ([Claim](), Int64(0))
        for claim in found.sorted(by: { $0.offset < $1.offset }) where claim.offset >= reached {
            claims.append(claim)
            reached = claim.range.upperBound
        }
        return claims
    }

    /// The claims of a manifest to bytes of a piece, counted from the piece's first byte.
    ///
    /// - Parameters:
    ///   - range: The bytes that the manifest is for.
    ///   - piece: The bytes of the piece.
    private func claims(in path: String, _ range: Range<Int64>, to piece: Range<Int64>) -> [Claim] {
        guard let bytes = try? self.file.job.contents(of: path, Surveyor.manifestLengthMaximum),
            let manifest = try? ManifestCodec.decode(bytes), !manifest.isRejected,
            let resource = self.resource(of: range), case .same = manifest.header.resource.verdict(on: resource)
        else { return [] }
        return (manifest.durable + manifest.pending).settled().compactMap { claim in
            let offset = claim.offset + range.lowerBound - piece.lowerBound
            let end = offset + claim.length
            let isWithinBlock = offset >= 0 && end <= BlockLayout.blockEnd(after: max(offset, 0))
            // Bytes with a mark are of a source of which only samples were compared.
            guard claim.mark == 0, isWithinBlock, end <= Int64(piece.count) else { return nil }
            return Claim(offset: offset, length: claim.length, crc: claim.crc)
        }
    }

    /// The identity of a range of the file as a download of this part has it; nil if the file's name is not known.
    private func resource(of range: Range<Int64>) -> RemoteResource? {
        guard case .named(let name)? = self.resource.locator else { return nil }
        let part = ResourcePart(DownloadOptions.Part(first: range.lowerBound, last: range.upperBound - 1))
        return RemoteResource(
            completeLength: Int64(range.count), validator: self.resource.validator,
            contentEncoding: self.resource.contentEncoding,
            locator: .named(ResourceName(requested: name.requested + part.suffix, target: name.target)))
    }
}
