import SegmentedDownloadCore

/// The records of pieces that other tasks than that of the range have fetched.
extension SharedFile {
    /// A file of a run that fetches a piece of another task's range.
    ///
    /// `3-of-8.piece-2.RUN` is the record of the complete piece. Until then there are the manifest `3-of-8.piece-2.RUN.segdl` and
    /// the lock `3-of-8.piece-2.RUN.segdl-part`. No two runs have files of the same name, so none disturbs another.
    struct PieceFile: Hashable {
        enum Kind { case record, manifest, other }

        let name: String
        let piece: RangePiece
        let run: String
        let kind: Kind

        init?(_ name: String) {
            let parts = name.split(separator: ".", maxSplits: 3, omittingEmptySubsequences: false)
            guard parts.count >= 3, let piece = RangePiece(parts[0], parts[1]) else { return nil }
            self.name = name
            self.piece = piece
            self.run = String(parts[2])
            self.kind =
                parts.count == 3
                ? .record : ".\(parts[3])" == DestinationPaths.manifestSuffix ? .manifest : .other
        }
    }

    /// The paths of a piece that a run fetches. Its destination is its record.
    func paths(of piece: RangePiece, run: String) -> DestinationPaths {
        DestinationPaths(directory: self.directory, name: "\(piece.fileName).\(run)")
    }

    /// The records of pieces among the files of the directory. Those that cannot be read do not count: their pieces are
    /// fetched again.
    func pieceRecords(
        _ files: [PieceFile], _ plan: SharedFilePlan
    ) -> [RangePiece: [FinishedRecord]] {
        var records: [RangePiece: [FinishedRecord]] = [:]
        for file in files.sorted(by: { $0.name < $1.name })
        where file.kind == .record && file.piece.shard.count == plan.division.count {
            guard let record = try? self.record(at: "\(self.directory)/\(file.name)", plan) else { continue }
            records[file.piece, default: []].append(record)
        }
        return records
    }

    /// The records of the ranges of which all pieces were fetched by other tasks.
    func combinedRecords(
        _ plan: SharedFilePlan, _ names: some Sequence<String>
    ) -> [Shard: FinishedRecord] {
        let records = self.pieceRecords(names.compactMap { PieceFile($0) }, plan)
        guard !records.isEmpty else { return [:] }
        var combined: [Shard: FinishedRecord] = [:]
        for shard in plan.division.shards {
            combined[shard] = plan.division.record(
                of: shard, combining: records, plan.resource, hasDigest: !plan.digests.isEmpty)
        }
        return combined
    }

    func combinedRecords(_ plan: SharedFilePlan) throws(DownloadError) -> [Shard: FinishedRecord] {
        do throws(StorageError) {
            return self.combinedRecords(plan, try self.names())
        } catch {
            throw error.failure
        }
    }

    /// Removes a file. A directory of that name is another program's, and stays.
    func removeFile(_ path: String) throws(StorageError) {
        do throws(StorageError) {
            try self.storage.remove(path)
        } catch {
            guard try self.storage.status(of: path)?.kind == .directory else { throw error }
        }
    }

    /// Removes the records of the pieces of a task's range, so that they are fetched again.
    func removePieceRecords(of shard: Shard) async throws(DownloadError) {
        do {
            let records = try self.names().compactMap { PieceFile($0) }
                .filter { $0.kind == .record && $0.piece.shard == shard }
            guard !records.isEmpty else { return }
            for record in records { try self.removeFile("\(self.directory)/\(record.name)") }
            try await self.storage.synchronize(directory: self.directory)
        } catch {
            throw DownloadError(wrapping: error)
        }
    }
}
