package import SegmentedDownloadCore

/// How the ranges of all tasks become the file.
///
/// Any number of tasks may do this at the same time: all of them read the same records and the same bytes, and only one
/// rename succeeds. The others find the finished file by its inode number.
extension SharedFile {
    package enum Outcome: Hashable, Sendable {
        /// These tasks have not completed their ranges.
        case waiting(for: [Shard])
        /// The file is in place.
        case assembled(length: Int64, crc: CRC32?)
    }

    /// Puts the file into place if all tasks have completed their ranges.
    ///
    /// - Parameter digests: Digests that the file must have, besides those of the plan.
    /// - Throws: ``DownloadError`` with code `integrity` if a digest is wrong, `changed` if the ranges are of different
    ///   versions, `exists` if another file has the name. All bytes are kept.
    package func assemble(
        _ plan: SharedFilePlan, digests: [ExpectedDigest] = [], unless interruption: Latch = Latch()
    ) async throws(DownloadError) -> Outcome {
        do {
            if try self.isAssembled(plan) { return try await self.cleaned(plan, crc: nil) }
            let lacking = try self.lacking(plan)
            guard lacking.isEmpty else {
                return try await self.isEnded(plan) ? self.cleaned(plan, crc: nil) : .waiting(for: lacking)
            }
            let records = try self.records(plan)
            let expected = plan.digests + digests.filter { !plan.digests.contains($0) }
            switch plan.division.verdict(on: records, of: plan.resource, hasDigest: !expected.isEmpty) {
            case .waiting(let shards):
                return try await self.isEnded(plan) ? self.cleaned(plan, crc: nil) : .waiting(for: shards)
            case .complete(let crc):
                try await self.place(plan, records, expected, crc, unless: interruption)
                return try await self.cleaned(plan, crc: crc)
            case .changed(let shard, let validator): throw self.changed(plan, shard, validator)
            case .unsuitable(let shard): throw try await self.unsuitable(shard)
            }
        } catch {
            // The file may have been put into place by another task at any moment.
            if (try? self.isAssembled(plan)) == true, let outcome = try? await self.cleaned(plan, crc: nil) {
                return outcome
            }
            throw DownloadError(wrapping: error)
        }
    }

    /// Whether another task has put the file into place, and removed records and plan. Throws if they are gone and the file is
    /// not there.
    private func isEnded(_ plan: SharedFilePlan) async throws -> Bool {
        // An NFS client may for some time remember that there was no file.
        for _ in 0..<Self.attempts {
            if try self.isAssembled(plan) { return true }
            if try self.plan()?.id == plan.id { return false }
            try await self.clock.sleep(until: self.clock.now + .seconds(1))
        }
        throw DownloadError(
            .state, "the records of the tasks were removed before \(self.paths.destination.printable) was complete",
            hint: "Run all tasks again")
    }

    /// Removes a task's record and throws if it does not count.
    package func check(
        _ record: FinishedRecord, of shard: Shard, _ plan: SharedFilePlan, hasDigest: Bool
    ) async throws(DownloadError) {
        let hasDigest = hasDigest || !plan.digests.isEmpty
        switch plan.division.objection(to: record, of: shard, plan.resource, hasDigest: hasDigest) {
        case .changed(let shard, let validator):
            try await self.removeRecord(of: shard)
            throw self.changed(plan, shard, validator)
        case .unsuitable(let shard): throw try await self.unsuitable(shard)
        case .waiting, .complete, nil: break
        }
    }

    private func changed(_ plan: SharedFilePlan, _ shard: Shard, _ validator: Validator) -> DownloadError {
        SharedFilePlan.changed(
            "the first task got \(plan.resource.validator), and task \(shard) \(validator)", directory: self.directory)
    }

    private func unsuitable(_ shard: Shard) async throws(DownloadError) -> DownloadError {
        try await self.removeRecord(of: shard)
        return DownloadError(
            .state, "the record of task \(shard) does not fit the plan, and was removed",
            hint: "Run task \(shard) again")
    }

    /// Whether the destination is the plan's file.
    package func isAssembled(_ plan: SharedFilePlan) throws(StorageError) -> Bool {
        try self.isAssembled(self.window(spanning: plan))
    }

    /// Whether the destination is the file that a window is of.
    package func isAssembled(_ window: FileWindow) throws(StorageError) -> Bool {
        guard let found = try self.storage.status(of: self.paths.destination) else { return false }
        return window.isData(found)
    }

    /// The tasks of whose ranges there is no record, as names tell. Tasks that wait look often, and a thousand of them would
    /// open a thousand records each time.
    private func lacking(_ plan: SharedFilePlan) throws -> [Shard] {
        let names = Set(try self.names())
        let pieces = Set(names.compactMap { PieceFile($0) }.filter { $0.kind == .record }.map(\.piece))
        return plan.division.shards.filter { shard in
            !names.contains(shard.fileName) && !plan.division.pieces(of: shard).allSatisfy(pieces.contains)
        }
    }

    /// The records of the tasks that have one.
    ///
    /// A task calls this after it has renamed its own record. An NFS client then reads the directory anew, because its
    /// change attribute is another one. So the last task to finish finds all records.
    private func records(_ plan: SharedFilePlan) throws -> [Shard: FinishedRecord] {
        // The status of each record costs a request to the server of the file system, so none is made in vain.
        let names = Set(try self.names())
        var records: [Shard: FinishedRecord] = [:]
        for shard in plan.division.shards where names.contains(shard.fileName) {
            records[shard] = try self.record(of: shard, plan)
        }
        for (shard, record) in self.combinedRecords(plan, names) where records[shard] == nil {
            records[shard] = record
        }
        return records
    }

    func names() throws(StorageError) -> [String] {
        do throws(StorageError) {
            return try self.storage.names(in: self.directory)
        } catch  where error.condition == .notFound {
            return []
        }
    }

    // MARK: Placing

    private func place(
        _ plan: SharedFilePlan, _ records: [Shard: FinishedRecord], _ digests: [ExpectedDigest], _ crc: CRC32,
        unless interruption: Latch
    ) async throws {
        let (path, length) = (self.dataPath(of: plan.id), plan.division.length)
        // Opened anew: on NFS only then all bytes of other machines are visible (nfs(5), "close-to-open").
        let file = try self.window(spanning: plan).openData(in: self.storage, .update)
        defer { file.close() }
        try self.storage.checkTrust(file.status(), path)
        // Two tasks may have written the same bytes of a range that others fetched, so it is read back.
        let written = Set(try self.names().compactMap { PieceFile($0)?.piece.shard })
        let doubtful =
            try file.firstHole() < length ? plan.division.shards : plan.division.shards.filter(written.contains)
        try await self.checkRanges(doubtful, file, plan, records, unless: interruption)
        try await self.check(digests, file, plan, records, crc, unless: interruption)
        if plan.options.keepsRemoteTime, let date = plan.resource.validator.lastModified {
            try file.setModified(date.secondsSinceEpoch)
        }
        let record = FinishedRecord(
            resource: plan.resource, length: length, crc: crc, modified: try file.status().modified, salt: plan.id)
        _ = try file.setAttribute(FinishedRecord.attribute, record.encoded)
        if plan.options.syncPolicy != .none { try await file.synchronize(metadata: true) }
        let own = try file.status()
        try self.rename(path, replacing: plan.options.ifExists == .overwrite || plan.options.ifExists == .update)
        guard try self.storage.status(of: self.paths.destination)?.isSameFile(as: own) == true else {
            throw DownloadError(
                .file,
                "\(self.paths.destination.printable) was replaced by another program while it was moved into place")
        }
        try await self.storage.synchronize(directory: self.paths.directory)
    }

    private func rename(_ path: String, replacing: Bool) throws(DownloadError) {
        do throws(StorageError) {
            try self.storage.rename(path, to: self.paths.destination, replacing: replacing)
        } catch {
            guard error.condition == .exists else { throw DownloadError(error.failure) }
            throw DownloadError(
                .exists, "\(self.paths.destination.printable) exists; the complete file is kept as \(path.printable)",
                hint: "Move it away, then: segdl assemble FILE")
        }
    }

    private func check(
        _ digests: [ExpectedDigest], _ file: any StorageFile, _ plan: SharedFilePlan,
        _ records: [Shard: FinishedRecord], _ crc: CRC32, unless interruption: Latch
    ) async throws {
        let others = digests.map(\.algorithm).filter { $0 != .crc32 }
        let read = others.isEmpty ? [] : try file.digests(others, length: plan.division.length, unless: interruption)
        var hexes = Dictionary(zip(others, read)) { first, _ in first }
        hexes[.crc32] = crc.hex
        guard let wrong = digests.first(where: { hexes[$0.algorithm] != $0.hex }) else { return }
        // The disk may be at fault, and not the server.
        try await self.checkRanges(plan.division.shards, file, plan, records, unless: interruption)
        throw DownloadError(
            .integrity,
            "the file's \(wrong.algorithm.rawValue) is \(hexes[wrong.algorithm] ?? ""), not \(wrong.hex). It is kept as "
                + self.dataPath(of: plan.id).printable,
            hint: "To start over, remove \(self.directory.printable), and run all tasks again")
    }

    /// Reads ranges, and removes the records of those whose bytes are not those that the task received.
    private func checkRanges(
        _ shards: [Shard], _ file: any StorageFile, _ plan: SharedFilePlan, _ records: [Shard: FinishedRecord],
        unless interruption: Latch
    ) async throws {
        var damaged: [Shard] = []
        for shard in shards {
            let range = plan.division.range(of: shard)
            let window = WindowFile(self.window(of: shard, plan), own: file, shared: file)
            let read = try window.digests([.crc32], length: Int64(range.count), unless: interruption)
            if read != [records[shard]?.crc.hex] { damaged.append(shard) }
        }
        guard !damaged.isEmpty else { return }
        for shard in damaged {
            try await self.removeRecord(of: shard)
            try await self.removePieceRecords(of: shard)
        }
        let tasks = damaged.map(\.description).joined(separator: ", ")
        throw DownloadError(
            .integrity, "the bytes of \(tasks) on disk are not those that were received",
            hint: "Run these tasks again", isTransient: true)
    }

    func window(spanning plan: SharedFilePlan) -> FileWindow {
        self.window(0..<plan.division.length, part: "", plan)
    }

    // MARK: Afterwards

    /// Removes the tasks' records, the plan last: until then it shows that the destination is the plan's file.
    private func cleaned(_ plan: SharedFilePlan, crc: CRC32?) async throws -> Outcome {
        let outcome = Outcome.assembled(length: plan.division.length, crc: crc)
        // The same command may have begun another download to the same name meanwhile.
        if let now = try self.plan(), now.id != plan.id { return outcome }
        try await self.storage.synchronize(directory: self.paths.directory)
        let names = try self.names()
        try self.removeLeftDrafts(names, plan)
        for name in names where self.isRemovable(name, plan) { try self.removeFile("\(self.directory)/\(name)") }
        if names.contains("plan") { try self.storage.remove("\(self.directory)/plan") }
        try self.storage.removeDirectory(self.directory)
        return outcome
    }

    /// Removes the drafts of other plans that tasks left which were killed when they began: those older than a record of this
    /// plan. It is called before the records are removed.
    private func removeLeftDrafts(_ names: [String], _ plan: SharedFilePlan) throws {
        let drafts = names.filter { $0.hasPrefix(Self.dataPrefix) && !self.isRemovable($0, plan) }
        guard !drafts.isEmpty else { return }
        let files = names.filter { Shard(fileName: $0.prefix { $0 != "." }) != nil }
        guard let newest = try files.compactMap({ try self.modified($0) }).max() else { return }
        for draft in drafts {
            if let modified = try self.modified(draft), modified < newest {
                try self.removeFile("\(self.directory)/\(draft)")
            }
        }
    }

    private func modified(_ name: String) throws -> Int64? {
        try self.storage.status(of: "\(self.directory)/\(name)")?.modified
    }

    /// Removes what is left of a completed file: a task may have been killed when it had removed the plan, or when it began a
    /// piece just after that.
    func removeRest() throws {
        let names = try self.names()
        guard !names.isEmpty, try self.plan() == nil else { return }
        for name in names where PieceFile(name) != nil { try self.storage.remove("\(self.directory)/\(name)") }
        try self.storage.removeDirectory(self.directory)
    }

    /// Whether the file in the directory is the plan's or a task's. A draft of another plan may be of a task that has just begun
    /// to fetch the next version.
    private func isRemovable(_ name: String, _ plan: SharedFilePlan) -> Bool {
        if "\(self.directory)/\(name)".hasPrefix(self.dataPath(of: plan.id)) { return true }
        if ["shard-", "job.json"].contains(where: { name.hasPrefix($0) }) { return true }
        return Shard(fileName: name.prefix { $0 != "." }) != nil
    }
}
