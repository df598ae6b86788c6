import SegmentedDownloadCore

/// The file once it has its name, while records and plan are still there: until they are removed, or because a task was
/// killed before.
extension SharedFile {
    /// The plan whose file has its name already; nil if there is none.
    ///
    /// Such a plan is over, and says nothing about what a later request wants: the destination is judged as any file, and the
    /// plan is removed (``clear(_:)``).
    package func leftover() throws(DownloadError) -> SharedFilePlan? {
        guard let plan = try self.plan() else { return nil }
        do throws(StorageError) {
            return try self.isAssembled(plan) ? plan : nil
        } catch {
            throw error.failure
        }
    }

    /// Whether the destination is the plan's file. Its content may have been changed since it was verified.
    package func isAssembled(_ plan: SharedFilePlan) throws(StorageError) -> Bool {
        try self.isAssembled(self.window(spanning: plan))
    }

    /// Whether the destination is the file that a window is of.
    package func isAssembled(_ window: FileWindow) throws(StorageError) -> Bool {
        guard let found = try self.storage.status(of: self.paths.destination) else { return false }
        return window.isData(found)
    }

    /// Opens the destination.
    ///
    /// - Throws: ``DownloadError`` if it is not the plan's file, ``DownloadError`` if another user may have written it.
    func openPlaced(_ plan: SharedFilePlan) throws -> any StorageFile {
        let path = self.paths.destination
        let file = try self.storage.open(path, .read)
        do {
            let status = try file.status()
            guard self.window(spanning: plan).isData(status) else {
                throw DownloadError(.file, "\(path.printable) was replaced by another program")
            }
            try self.storage.checkTrust(finished: status, path)
            return file
        } catch {
            file.close()
            throw error
        }
    }

    // MARK: Its record

    /// The name of the record of a file that was put into place on a file system without extended attributes.
    static func placedName(of id: UInt64) -> String { Self.dataPrefix + String(id, radix: 16) + Self.placedSuffix }

    private static let placedSuffix = ".placed"

    private func placedPath(of plan: SharedFilePlan) -> String { "\(self.directory)/\(Self.placedName(of: plan.id))" }

    /// Whether a name is that of such a record of any plan, or of a draft of one.
    static func isPlacedName(_ name: String) -> Bool {
        name.hasPrefix(Self.dataPrefix) && name.contains(Self.placedSuffix)
    }

    /// Writes that record before the file gets its name.
    ///
    /// A failure is not an error: without the record, the next run does not recognize the file if this one is killed before it
    /// has removed the plan.
    func leaveRecord(_ record: FinishedRecord, _ plan: SharedFilePlan, run: UInt64) async {
        let path = self.placedPath(of: plan)
        do throws(StorageError) {
            try await self.job.write(
                FileWindow.record(record.encoded, of: plan.id), to: path, draft: "\(path).\(String(run, radix: 16))",
                replacing: true)
            try await self.storage.synchronize(directory: self.directory)
        } catch {
            // The file is complete without it.
        }
    }

    /// The record of the file that has its name; nil if there is none.
    ///
    /// - Parameter isRequired: Whether nothing else shows what the file contains. Then nil means that another task has verified
    ///   the file and has removed its records and the plan since.
    /// - Throws: ``DownloadError`` with code `state` if a required record is missing although the plan is there.
    func record(
        ofPlaced file: any StorageFile, _ plan: SharedFilePlan, isRequired: Bool
    ) async throws -> FinishedRecord? {
        // Another task may be about to remove the plan, and an NFS client may for some time remember that there was no record.
        for _ in 0..<Self.attempts {
            let attribute = file.attribute(FinishedRecord.attribute).flatMap { FinishedRecord(decoding: $0) }
            let record = try attribute ?? self.record(at: self.placedPath(of: plan), plan)
            if let record, record.length == plan.division.length { return record }
            guard isRequired, try self.plan()?.id == plan.id else { return nil }
            try await self.clock.sleep(until: self.clock.now + .seconds(1))
        }
        throw DownloadError(
            .state, "no record shows whether \(self.paths.destination.printable) is still as it was verified",
            hint: "Give a digest of the file")
    }

    /// What the plan's record beside it says of the destination; nil if there is none, or the bytes are others. They are read.
    func resource(ofPlaced plan: SharedFilePlan) throws -> RemoteResource? {
        guard let record = try self.record(at: self.placedPath(of: plan), plan) else { return nil }
        let file = try self.openPlaced(plan)
        defer { file.close() }
        return try file.digests([.crc32], length: record.length) == [record.crc.hex] ? record.resource : nil
    }
}

extension FinishedRecord {
    /// Whether a file with this status need not be read, because nothing has changed it since it was verified.
    func isCurrent(for status: StorageStatus) -> Bool {
        self.isSynced && status.length == self.length && status.modified == self.modified
    }
}
