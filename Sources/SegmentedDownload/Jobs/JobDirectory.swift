package import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A directory with the records of a job: a list whose entries several tasks fetch, perhaps on several machines that
/// share the file system.
///
/// Every run of a task writes files of its own, so that no file has two writers and no lock between machines is needed:
///
/// - `shard-3-of-8.RUN.finished`: the entries that the run finished, with the states of their files (``FinishedEntryCodec``).
/// - `shard-3-of-8.RUN.names`: names of files that do not follow from their requests (``EntryNameCodec``).
/// - `shard-3-of-8.RUN.placing`: what the run was about to put into place without a record in an attribute (``PlacingLog``).
/// - `shard-3-of-8.RUN.failed`: the entries that failed, as a list that segdl reads.
/// - `shard-3-of-8.json`: what the task's last run reported (``ShardStatus``).
/// - `job.json`: what is saved of the job's files, and where (``JobSettings``).
///
/// An entry is recorded after its file is complete and durable, and the record counts while the file is as it was then. A record
/// that is lost means a conditional request; no record is ever needed for a correct result.
package struct JobDirectory: Sendable {
    /// A file of a task in the directory.
    package struct Name: Hashable, Sendable {
        package enum Kind: String, Sendable { case finished, names, placing, failed, json }

        package var shard: Shard
        /// Empty for the status.
        package var run: String
        package var kind: Kind

        package init(_ shard: Shard, run: String = "", _ kind: Kind) {
            (self.shard, self.run, self.kind) = (shard, run, kind)
        }

        /// Nil for a file of another kind.
        package init?(_ text: String) {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false)
            guard let first = parts.first, first.hasPrefix("shard-"), let last = parts.last,
                let kind = Kind(rawValue: String(last)),
                let shard = Shard(fileName: first.dropFirst("shard-".count))
            else { return nil }
            self.init(shard, run: parts.count == 3 ? String(parts[1]) : "", kind)
            guard self.text == text else { return nil }
        }

        package var text: String {
            let stem = "shard-\(self.shard.fileName)"
            return (self.run.isEmpty ? [stem, self.kind.rawValue] : [stem, self.run, self.kind.rawValue])
                .joined(separator: ".")
        }
    }

    package let path: String
    let storage: any Storage

    package init(_ path: String, storage: any Storage = POSIXStorage()) {
        (self.path, self.storage) = (path, storage)
    }

    func path(of name: Name) -> String { "\(self.path)/\(name.text)" }

    /// Creates a record for the owner only, like a manifest: it may have URLs with secrets. With a usual umask of 002 the
    /// group could write it otherwise, and it would not be trusted.
    func create(_ path: String) throws(StorageError) -> any StorageFile {
        try self.storage.open(path, .createPrivate)
    }

    /// The files of tasks in the directory, in no order.
    package func names() throws(DownloadError) -> [Name] {
        do throws(StorageError) {
            return try self.storage.names(in: self.path).compactMap { Name($0) }
        } catch {
            throw error.failure
        }
    }

    /// Creates the directory, or checks that it belongs to the same job.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the directory belongs to a job that saves its files elsewhere, other
    ///   bytes of them, or under other names.
    package func open(_ settings: JobSettings, draft seed: UInt64) async throws(DownloadError) {
        let path = "\(self.path)/job.json"
        do {
            try self.storage.makeDirectory(self.path)
            if try self.storage.status(of: path) == nil {
                // The first of the tasks that start together creates the file; the others find it.
                try await self.write(
                    settings.encoded, to: path, draft: "\(path).\(String(seed, radix: 16))", replacing: false)
            }
            let found = try self.contents(of: path, JobSettings.lengthMax)
            guard let other = JobSettings(found) else {
                throw DownloadError(
                    .state, "\(path.printable) is damaged, or written by a later version of segdl",
                    hint: "If it is damaged, stop all tasks, remove it, and run them again; nothing else is lost")
            }
            if let difference = settings.difference(from: other) {
                throw DownloadError(.usage, "the job \(self.path.printable) \(difference.text)", hint: difference.hint)
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// Replaces a file, or creates it, atomically.
    func write(_ bytes: [UInt8], to path: String, draft: String, replacing: Bool) async throws(StorageError) {
        let file = try self.create(draft)
        defer { file.close() }
        do throws(StorageError) {
            try file.writeFully(bytes, at: 0)
            try await file.synchronize(metadata: false)
            do throws(StorageError) {
                if replacing {
                    try self.storage.rename(file, from: draft, to: path, replacing: true)
                } else {
                    try self.storage.publish(file, from: draft, to: path)
                }
            } catch  where error.condition == .exists && !replacing {
                try self.storage.remove(draft)
            }
        } catch {
            try? self.storage.remove(draft)
            throw error
        }
    }

    func contents(of path: String, _ limit: Int) throws -> [UInt8] {
        let file = try self.storage.open(path, .read)
        defer { file.close() }
        try self.storage.checkTrust(file.status(), path)
        return try file.contents(limit: limit)
    }

    /// The status of every task that has one, in no order. Unreadable ones are left out.
    package func statuses() throws(DownloadError) -> [ShardStatus] {
        try self.names().compactMap { $0.kind == .json ? self.status(of: $0.shard)?.status : nil }
    }

    /// What a task's last run reported, and when: the file's modification time in nanoseconds since 1970.
    func status(of shard: Shard) -> (status: ShardStatus, modified: Int64)? {
        let path = self.path(of: Name(shard, .json))
        guard let bytes = try? self.contents(of: path, JobSettings.lengthMax),
            let modified = try? self.storage.status(of: path)?.modified,
            let status = try? JSONDecoder().decode(ShardStatus.self, from: Data(bytes))
        else { return nil }
        return (status, modified)
    }
}
