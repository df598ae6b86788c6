package import SegmentedDownloadCore

/// How the ranges of all tasks become the file.
///
/// Any number of tasks may do this at the same time: all of them read the same records and the same bytes, and only one
/// rename succeeds. The others find a file with the plan's inode number, and check it.
extension SharedFile {
    package enum Outcome: Hashable, Sendable {
        /// These tasks have not completed their ranges.
        case waiting(for: [Shard])
        /// The file is in place.
        case assembled(VerifiedFile)
    }

    /// Puts the file into place if all tasks have completed their ranges.
    ///
    /// - Parameters:
    ///   - digests: Digests that the file must have, besides those of the plan.
    ///   - ifExists: The policy of the request that the file is completed for: whether another file with the name is replaced.
    ///   - run: Random. It names a draft.
    /// - Throws: ``DownloadError`` with code `integrity` if the bytes or a digest are wrong, `changed` if the ranges are of
    ///   different versions, `exists` if another file has the name. All bytes are kept.
    package func assemble(
        _ plan: SharedFilePlan, digests: [ExpectedDigest] = [], ifExists: DownloadOptions.ExistingFilePolicy,
        run: UInt64, unless interruption: Latch = Latch()
    ) async throws(DownloadError) -> Outcome {
        do {
            let outcome = try await self.assembleRanges(plan, digests, ifExists, run: run, unless: interruption)
            if let outcome { return outcome }
        } catch {
            // Another task may have put the file into place at any moment. But an error that shows other content, or an
            // interruption, never becomes success.
            let error = DownloadError(wrapping: error)
            guard ![.integrity, .changed, .cancelled].contains(error.code), (try? self.isAssembled(plan)) == true
            else { throw error }
        }
        do {
            return try await self.completed(plan, digests, unless: interruption)
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// - Returns: Nil if the file has its name already.
    private func assembleRanges(
        _ plan: SharedFilePlan, _ digests: [ExpectedDigest], _ ifExists: DownloadOptions.ExistingFilePolicy,
        run: UInt64, unless interruption: Latch
    ) async throws -> Outcome? {
        if try self.isAssembled(plan) { return nil }
        let lacking = try self.lacking(plan)
        guard lacking.isEmpty else { return try await self.isEnded(plan) ? nil : .waiting(for: lacking) }
        let records = try self.records(plan)
        let expected = plan.digests(besides: digests, stated: records.values.flatMap(\.resource.digests))
        switch plan.division.verdict(on: records, of: plan.resource, hasDigest: !expected.isEmpty) {
        case .waiting(let shards): return try await self.isEnded(plan) ? nil : .waiting(for: shards)
        case .complete(let crc):
            let file = try await self.place(plan, records, expected, crc, ifExists, run: run, unless: interruption)
            try await self.clear(plan)
            return .assembled(file)
        case .changed(let shard, let validator): throw self.changed(plan, shard, validator)
        case .unsuitable(let shard): throw try await self.unsuitable(shard)
        }
    }

    /// Checks the plan's file, which has its name already, and removes the records.
    ///
    /// Besides the rename of ``assembleRanges`` this is the only way to success. The content counts as unchanged since it was
    /// verified only if its record says so (``FinishedRecord/isCurrent(for:)``). Otherwise it is read. The digests of the request
    /// are compared in any case: the task that verified the file need not have had them.
    private func completed(
        _ plan: SharedFilePlan, _ digests: [ExpectedDigest], unless interruption: Latch
    ) async throws -> Outcome {
        let expected = plan.digests(besides: digests)
        let file = try self.openPlaced(plan)
        defer { file.close() }
        let status = try file.status()
        let record = try await self.record(ofPlaced: file, plan, isRequired: expected.isEmpty)
        let path = self.paths.destination.printable
        let hint = self.startingOver(removing: self.paths.destination)
        let verified: VerifiedFile
        // Without a record, only digests can show that the content is right.
        if !digests.isEmpty || !(record?.isCurrent(for: status) ?? plan.digests.isEmpty) {
            let content = try self.content(of: file, plan, for: expected, unless: interruption).content
            if let record, record.crc != content.crc {
                throw DownloadError(.integrity, "the bytes of \(path) are not those that were received", hint: hint)
            }
            verified = try self.judged(content, for: expected, from: plan.resource, at: path, hint: hint)
        } else {
            let known = VerifiedFile.Content(length: status.length, crc: record?.crc)
            verified = try .judged(known, for: .init(length: plan.division.length), by: .recorded)
        }
        try await self.clear(plan)
        return .assembled(verified)
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
        _ ifExists: DownloadOptions.ExistingFilePolicy, run: UInt64, unless interruption: Latch
    ) async throws -> VerifiedFile {
        let path = self.dataPath(of: plan.id)
        // Opened anew: on NFS only then all bytes of other machines are visible (nfs(5), "close-to-open").
        let file = try self.window(spanning: plan).openData(in: self.storage, .update)
        defer { file.close() }
        let before = try file.status()
        try self.storage.checkTrust(before, path)
        let (content, ranges) = try self.content(of: file, plan, for: digests, unless: interruption)
        try await self.withdraw(zip(plan.division.shards, ranges).filter { records[$0]?.crc != $1 }.map(\.0))
        let verified = try self.judged(
            content, for: digests, from: plan.resource, at: path.printable, hint: self.startingOver())
        // The time before the file was read: the record does not count for what is written later.
        var modified = before.modified
        if plan.options.keepsRemoteTime, let date = plan.resource.validator.lastModified {
            try file.setModified(date.secondsSinceEpoch)
            modified = try file.status().modified
        }
        var record = FinishedRecord(
            resource: plan.resource, length: plan.division.length, crc: crc, modified: modified, salt: plan.id)
        record.isSynced = plan.options.syncPolicy != .none
        record.selection = plan.selection
        record.resource.state(digests)
        let hasRecord = try file.setAttribute(FinishedRecord.attribute, record.encoded)
        if plan.options.syncPolicy != .none { try await file.synchronize(metadata: true) }
        if !hasRecord { await self.leaveRecord(record, plan, run: run) }
        let own = try file.status()
        let replaces = ifExists == .overwrite || ifExists == .update
        let permissions = try self.storage.permissions(ofPart: file, at: self.paths.destination, replaces: replaces)
        try self.rename(path, replacing: replaces, run: run)
        guard try self.storage.status(of: self.paths.destination)?.isSameFile(as: own) == true else {
            throw DownloadError(
                .file,
                "\(self.paths.destination.printable) was replaced by another program while it was moved into place")
        }
        file.release(permissions)
        try await self.storage.synchronize(directory: self.paths.directory)
        return verified
    }

    private func rename(_ path: String, replacing: Bool, run: UInt64) throws(DownloadError) {
        do throws(StorageError) {
            guard replacing else {
                // Several tasks may do this at once. Only on NFS and file systems like it does it take more than a rename.
                return try self.storage.renameExclusively(
                    path, to: self.paths.destination, trial: "\(path).\(String(run, radix: 16))")
            }
            try self.storage.checkReplaceable(self.paths.destination)
            try self.storage.rename(path, to: self.paths.destination, replacing: true)
        } catch {
            guard error.condition == .exists else { throw error.failure }
            throw DownloadError(
                .exists, "\(self.paths.destination.printable) exists; the complete file is kept as \(path.printable)",
                hint: "Move it away, then: segdl assemble FILE")
        }
    }

    /// A file's content as one of the resource with these digests.
    private func judged(
        _ content: VerifiedFile.Content, for digests: [ExpectedDigest], from resource: RemoteResource, at path: String,
        hint: String
    ) throws(DownloadError) -> VerifiedFile {
        do throws(DownloadError) {
            return try .judged(content, for: .init(digests: digests), by: .received(resource, .validator))
        } catch {
            throw DownloadError(.integrity, "\(error.message). It is kept as \(path)", hint: hint)
        }
    }

    /// What the bytes of a file are, found by reading it once, and the CRC-32 of each task's range in their order.
    private func content(
        of file: any StorageFile, _ plan: SharedFilePlan, for digests: [ExpectedDigest], unless interruption: Latch
    ) throws -> (content: VerifiedFile.Content, ranges: [CRC32]) {
        var running = Set(digests.map(\.algorithm)).subtracting([.crc32]).map { RunningDigest($0) }
        var (ranges, crc, length) = ([CRC32](), CRC32(), Int64(0))
        for shard in plan.division.shards {
            let window = WindowFile(self.window(of: shard, plan), own: file, shared: file)
            var part = CRC32()
            let count = try window.read(
                length: Int64(plan.division.range(of: shard).count), unless: interruption
            ) { bytes in
                part.update(bytes)
                for index in running.indices { running[index].update(bytes) }
            }
            ranges.append(part)
            crc.append(part, length: count)
            length += count
        }
        let hexes = Dictionary(uniqueKeysWithValues: running.map { ($0.algorithm, $0.hex) })
        return (VerifiedFile.Content(length: length, crc: crc, hexes: hexes), ranges)
    }

    private func startingOver(removing path: String? = nil) -> String {
        let paths = [path, self.directory].compactMap { $0?.printable }.joined(separator: " and ")
        return "To start over, remove \(paths), and run all tasks again"
    }

    /// Removes the records of tasks whose bytes on disk are not those that the tasks received, and throws if there are any.
    private func withdraw(_ damaged: [Shard]) async throws(DownloadError) {
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

    /// Removes the tasks' records after the file has got its name. The plan is removed last: until then it shows that the
    /// destination is the plan's file. Just before it goes the record of the file that could not be stored in an attribute.
    package func clear(_ plan: SharedFilePlan) async throws {
        try await self.storage.synchronize(directory: self.paths.directory)
        // Another task may have removed the plan meanwhile, and begun another download to the same name.
        if let now = try self.plan(), now.id != plan.id { return }
        let names = try self.names()
        try self.removeLeftDrafts(names, plan)
        let placed = Self.placedName(of: plan.id)
        for name in names where self.isRemovable(name, plan) && name != placed {
            try self.removeFile("\(self.directory)/\(name)")
        }
        if names.contains(placed) { try self.removeFile("\(self.directory)/\(placed)") }
        if names.contains("plan"), try self.plan()?.id == plan.id {
            try self.storage.remove("\(self.directory)/plan")
        }
        try self.storage.removeDirectory(self.directory)
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
        for name in names where PieceFile(name) != nil || Self.isPlacedName(name) {
            try self.storage.remove("\(self.directory)/\(name)")
        }
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
