package import SegmentedDownloadCore
import SystemPackage

/// A file that several tasks download together, perhaps on several machines that share its file system.
///
/// Beside the destination `FILE` there is a directory `FILE.segdl-tasks`, until `FILE` is complete:
///
/// - `data-ID`: the file's bytes. Every task writes its own range, and a task that takes a range over writes the same bytes to
///   it (``TakeOver``), so that no locks between machines are needed.
/// - `plan`: what all tasks agree on (``SharedFilePlan``). It appears at once and is never changed.
/// - `3-of-8.segdl` and `3-of-8.segdl-part`: the manifest of task 3 while it runs, and its lock.
/// - `3-of-8`: its record, once its range is complete and durable (``FinishedRecord``).
/// - `3-of-8.piece-2.RUN` and others: those of a run of another task that fetches a piece of the range (``TakeOver``).
/// - `data-ID.placed`: the record of the complete file, if the file system has no extended attributes. It is written before
///   `data-ID` becomes `FILE`, and removed just before the plan.
/// - What tasks report, as in any ``JobDirectory``.
///
/// An ordinary download to `FILE` uses none of these names.
package struct SharedFile: Sendable {
    static let directorySuffix = ".segdl-tasks"

    /// The destination.
    package let paths: DestinationPaths
    package let job: JobDirectory
    let storage: any Storage
    let clock: any EngineClock
    /// The alignment of ranges in a new plan; nil for that of the file system.
    package var alignment: Int64?

    package init(
        _ path: String, storage: any Storage = POSIXStorage(), clock: any EngineClock = SystemClock()
    ) {
        self.paths = DestinationPaths(path: path)
        self.job = JobDirectory(self.paths.destination + Self.directorySuffix, storage: storage)
        self.storage = storage
        self.clock = clock
    }

    /// The directory with the records of the tasks.
    package var directory: String { self.job.path }

    /// Whether a path is in such a directory.
    package static func containsTask(_ path: String) -> Bool {
        DestinationPaths(path: path).directory.hasSuffix(Self.directorySuffix)
    }

    private var planPath: String { "\(self.directory)/plan" }
    func dataPath(of id: UInt64) -> String { "\(self.directory)/\(Self.dataPrefix)\(String(id, radix: 16))" }
    static let dataPrefix = "data-"

    // MARK: The plan

    /// The plan of a download that has begun and is not complete; nil if there is none.
    package func plan() throws(DownloadError) -> SharedFilePlan? {
        do {
            guard let status = try self.storage.status(of: self.planPath) else { return nil }
            guard status.kind == .file else { throw self.unreadable("is not a file") }
            try self.checkTrust()
            let bytes = try self.job.contents(of: self.planPath, Self.planLengthMax)
            guard let plan = try SharedFilePlan(decoding: bytes) else { throw self.unreadable("is not a plan") }
            return plan
        } catch let error as StorageError where error.condition == .notFound {
            // Another task has just completed the file.
            return nil
        } catch ManifestCodec.Damage.versionUnknown(let version) {
            throw self.unreadable("has version \(version), which a later version of segdl writes")
        } catch is ManifestCodec.Damage {
            throw self.unreadable("is damaged")
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// 512 KiB: twice the longest header of a manifest.
    private static let planLengthMax = 512 << 10

    private func unreadable(_ why: String) -> DownloadError {
        DownloadError(
            .state, "\(self.planPath.printable) \(why)",
            hint: "To start over, stop all tasks, remove \(self.directory.printable), and run them again")
    }

    /// Creates the shared file and its plan, or returns the plan of the task that was first.
    ///
    /// - Parameters:
    ///   - id: Random.
    ///   - selection: What the request selects the representation with.
    package func begin(
        id: UInt64, _ request: DownloadRequest, of resource: RemoteResource, count: Int, length: Int64,
        selection: RequestSelection.Values = [:]
    ) async throws(DownloadError) -> SharedFilePlan {
        do {
            try self.storage.makeDirectory(self.paths.directory)
            try self.storage.makeDirectory(self.directory, isPrivate: true)
            try self.checkTrust()
            if let plan = try self.plan() { return plan }
            let draft = self.dataPath(of: id)
            let status = try await self.createData(draft, length: length)
            var isSettled = false
            defer { if !isSettled { self.removeDraft(draft, of: id) } }
            guard
                let division = FileDivision(
                    count: count, length: length,
                    alignment: self.alignment ?? FileDivision.alignment(blockLength: status.blockLength))
            else { throw DownloadError(.usage, "a file of \(length) bytes cannot be divided among \(count) tasks") }
            let plan = SharedFilePlan(
                id: id, division, of: resource, request, selection: selection, inode: status.inode)
            try await self.job.write(plan.encoded, to: self.planPath, draft: "\(draft).plan", replacing: false)
            let found = try await self.published()
            if found.id != id { try self.storage.remove(draft) }
            isSettled = true
            try await self.storage.synchronize(directory: self.directory)
            try await self.storage.synchronize(directory: self.paths.directory)
            return found
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// Throws if another user could replace files of the directory.
    private func checkTrust() throws {
        guard let status = try self.storage.status(of: self.directory) else { return }
        try self.storage.checkTrust(status, self.directory)
    }

    private func createData(_ path: String, length: Int64) async throws -> StorageStatus {
        let file = try self.storage.open(path, .create)
        defer { file.close() }
        do {
            try file.protect()
            try file.truncate(to: length)
            // The length must not be lost in a crash of the first machine while others write.
            try await file.synchronize(metadata: true)
            return try file.status()
        } catch {
            try? self.storage.remove(path)
            throw error
        }
    }

    /// Removes the shared file of a plan that could not be published.
    private func removeDraft(_ path: String, of id: UInt64) {
        do {
            if try self.plan()?.id != id { try self.storage.remove(path) }
        } catch {
            // The plan may be this one. The draft stays.
        }
    }

    /// The plan that this task or another has just published. An NFS client may for some time remember that there was
    /// none.
    private func published() async throws -> SharedFilePlan {
        for _ in 0..<Self.attempts {
            if let plan = try self.plan() { return plan }
            try await self.clock.sleep(until: self.clock.now + .seconds(1))
        }
        throw DownloadError(.file, "\(self.planPath.printable) was removed by another program")
    }

    /// 60: an NFS client remembers names for 60 s at most (`acdirmax`).
    static let attempts = 60

    // MARK: Tasks

    /// The paths of a task. Its destination is its record.
    package func paths(of shard: Shard) -> DestinationPaths {
        DestinationPaths(directory: self.directory, name: shard.fileName)
    }

    /// The window that a task writes.
    package func window(of shard: Shard, _ plan: SharedFilePlan) -> FileWindow {
        self.window(plan.division.range(of: shard), part: self.paths(of: shard).part, plan)
    }

    /// - Parameter part: The path of the task's own file.
    func window(_ range: Range<Int64>, part: String, _ plan: SharedFilePlan) -> FileWindow {
        FileWindow(
            part: part, data: self.dataPath(of: plan.id), inode: plan.inode, range: range,
            completeLength: plan.division.length, plan: plan.id)
    }

    /// The record of a task's complete range; nil if there is none of the plan that can be read.
    package func record(of shard: Shard, _ plan: SharedFilePlan) throws(DownloadError) -> FinishedRecord? {
        try self.record(at: self.paths(of: shard).destination, plan)
    }

    func record(at path: String, _ plan: SharedFilePlan) throws(DownloadError) -> FinishedRecord? {
        do {
            let content = try self.job.contents(of: path, Self.recordLengthMax)
            return FileWindow.isRecord(content, of: plan.id) ? FinishedRecord(decoding: content) : nil
        } catch let error as StorageError where error.condition == .notFound {
            return nil
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// 64 KiB: many times the longest record.
    private static let recordLengthMax = 64 << 10

    /// Removes a task's record, so that its range is fetched again.
    package func removeRecord(of shard: Shard) async throws(DownloadError) {
        do throws(StorageError) {
            try self.storage.remove(self.paths(of: shard).destination)
            try await self.storage.synchronize(directory: self.directory)
        } catch {
            throw error.failure
        }
    }

    /// The request for a task's range.
    ///
    /// Digests and lengths are those of the complete file, and are checked when it is assembled. The record of a range that is
    /// not durable would be worthless to other machines, so a policy without syncs is replaced.
    ///
    /// - Parameter current: The file as the server has it now. The caller has compared it with the plan.
    package func request(
        for shard: Shard, _ plan: SharedFilePlan, of request: DownloadRequest, from current: RemoteResource
    ) -> DownloadRequest {
        let window = self.window(of: shard, plan)
        var task = self.request(for: window, to: self.paths(of: shard), sharing: shard, request)
        // The server may have another version since it was asked, and others may write the same bytes. A digest proves the
        // version too, also if redirects lead to several places.
        if plan.digests.isEmpty { task.requiredResource = plan.resource(of: window.range, as: current) }
        return task
    }

    /// The request for a window of the file.
    ///
    /// - Parameter shard: The task whose share of the limits it has.
    func request(
        for window: FileWindow, to paths: DestinationPaths, sharing shard: Shard, _ request: DownloadRequest
    ) -> DownloadRequest {
        var task = request
        task.destination = .file(FilePath(paths.destination))
        task.window = window
        task.options.part = DownloadOptions.Part(
            first: window.range.lowerBound, last: window.range.upperBound - 1)
        (task.options.digests, task.options.computedDigests, task.pieceDigests) = ([], [], nil)
        (task.options.lengthExpected, task.options.lengthMaximum) = (nil, .max)
        (task.options.ifExists, task.options.onChange) = (.skip, .fail)
        task.options.keepsRemoteTime = false
        task.options.bytesPerSecond = request.options.bytesPerSecond.map { shard.limit(of: $0) }
        if task.options.syncPolicy == .none { task.options.syncPolicy = .end }
        return task
    }
}
