package import SegmentedDownloadCore

extension SharedFile {
    /// How far a task is, as its manifest or record says.
    package struct TaskStatus: Hashable, Sendable {
        package let shard: Shard
        package let range: Range<Int64>
        /// Bytes of the range that are on disk.
        package let bytesDone: Int64
        package let isComplete: Bool
    }

    /// The tasks that have bytes to fetch, in the order of their ranges.
    package func tasks(_ plan: SharedFilePlan) throws(DownloadError) -> [TaskStatus] {
        var tasks: [TaskStatus] = []
        let combined = try self.combinedRecords(plan)
        for shard in plan.division.shards {
            let range = plan.division.range(of: shard)
            let record = try self.record(of: shard, plan)
            let isComplete = (record ?? combined[shard]) != nil
            tasks.append(
                TaskStatus(
                    shard: shard, range: range,
                    bytesDone: isComplete ? Int64(range.count) : self.bytesDone(of: shard), isComplete: isComplete))
        }
        return tasks
    }

    /// Whether a task has nothing to fetch.
    package func isComplete(_ shard: Shard, _ plan: SharedFilePlan) throws(DownloadError) -> Bool {
        if plan.division.range(of: shard).isEmpty { return true }
        if try self.record(of: shard, plan) != nil { return true }
        if try self.combinedRecords(plan)[shard] != nil { return true }
        // Records are removed after the file is in place, so this is looked at last.
        do throws(StorageError) {
            return try self.isAssembled(plan)
        } catch {
            throw error.failure
        }
    }

    /// The bytes that a task's manifest claims; 0 if it has none.
    package func bytesDone(of shard: Shard) -> Int64 {
        let path = self.paths(of: shard).destination
        return (try? SavedDownload(reading: path, storage: self.storage))?.bytesDone ?? 0
    }
}

extension SharedFile {
    /// What is at the destination.
    package enum Existing: Sendable {
        /// The server's file.
        case complete(VerifiedFile)
        /// Another file, or one of which nothing shows that it is the server's.
        case other
    }

    /// What is at the destination; nil if nothing is.
    ///
    /// - Parameter leftover: The plan that has put the destination into place, if it is still there. On a file system without
    ///   extended attributes it has the record of the destination.
    /// - Throws: ``DownloadError`` with code `exists` if it is no file, or not to be trusted.
    package func existing(
        _ resource: RemoteResource, digests: [ExpectedDigest], selection: RequestSelection.Values = [:],
        leftover: SharedFilePlan?
    ) throws(DownloadError) -> Existing? {
        do {
            guard try self.storage.status(of: self.paths.destination) != nil else { return nil }
            var surveyor = Surveyor(storage: self.storage, digests: digests)
            surveyor.selection = selection
            let finding = try surveyor.survey(self.paths, policy: .verify)
            guard case .existing(let file) = finding.survey else {
                finding.part?.close()
                return nil
            }
            if let isIdentified = file.isIdentified {
                return isIdentified ? .complete(try file.judged(by: .digests)) : .other
            }
            guard file.length == resource.completeLength, file.otherRequest == nil,
                let recorded = try file.record ?? leftover.flatMap({ try self.resource(ofPlaced: $0) }),
                case .same = recorded.verdict(on: resource)
            else { return .other }
            let unread = recorded.digestsLacking(of: resource.digests)
            guard unread.isEmpty else {
                return try self.existing(resource, digests: unread, selection: selection, leftover: leftover)
            }
            return .complete(try file.judged(by: .confirmed(recorded)))
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// The existing file, for a request that keeps any file; nil if there is none.
    ///
    /// - Throws: ``DownloadError`` with code `exists` if it does not have the digests that were given.
    package func kept(digests: [ExpectedDigest]) throws(DownloadError) -> VerifiedFile? {
        do {
            guard let status = try self.storage.status(of: self.paths.destination) else { return nil }
            var content = VerifiedFile.Content(length: status.length)
            if !digests.isEmpty {
                let file = try self.storage.open(self.paths.destination, .read)
                defer { file.close() }
                try content.complete(from: file, for: digests, unless: Latch())
            }
            do throws(DownloadError) {
                return try .judged(content, for: .init(digests: digests), by: .kept)
            } catch {
                throw DownloadError(
                    .exists, "\(self.paths.destination.printable) exists, and \(error.message)",
                    remedy: .keepBothOrReplace)
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }
}

extension RemoteFile {
    /// What identifies the file's version.
    ///
    /// - Throws: ``DownloadError`` with code `protocol` if the file cannot be divided: the server does not support ranges, or
    ///   without a digest nothing proves that the ranges of several machines are of one version. With code `space` if the
    ///   length that the server states is more than any disk holds.
    package func divisible(hasDigest: Bool) throws(DownloadError) -> (resource: RemoteResource, length: Int64) {
        guard let resource = self.resource, let length = resource.completeLength, self.supportsRanges || length == 0
        else {
            throw DownloadError(
                .protocol, "the server does not support ranges, so the file cannot be divided among tasks",
                hint: "Fetch it as a whole with one task")
        }
        guard length <= FileDivision.lengthMax else {
            throw DownloadError(
                .space, "the server states a length of \(length) bytes, which is more than any disk holds",
                hint: "Check the URL")
        }
        guard hasDigest || self.digest != nil || resource.isProvable || length == 0 else {
            let isNew = resource.validator.isDateWeak
            throw DownloadError(
                .protocol,
                isNew
                    ? "the file was modified just now, so its Last-Modified could not prove that all tasks fetch the same version"
                    : "the server sends no ETag or Last-Modified that could prove that all tasks fetch the same version",
                hint: isNew
                    ? "Run the tasks again after a minute, or give a digest of the file"
                    : "Give a digest of the file, or fetch it as a whole with one task")
        }
        return (resource, length)
    }
}
