package import SegmentedDownloadCore

extension JobDirectory {
    /// A file with records, up to its length when it was found.
    private struct RecordFile {
        var name: Name
        var file: any StorageFile
        var length: Int64
    }

    /// 1 MiB, a multiple of the records' lengths: a piece in which records are read.
    private static let pieceLength = 1 << 20
    /// 4: so many files of one task are joined into one.
    private static let filesMax = 4

    /// The records of a task's entries that any run has finished, under any number of tasks.
    package func finished(of shard: Shard) throws(DownloadError) -> FinishedEntries {
        do {
            let files = try self.open(
                try self.names().filter { $0.kind == .finished && $0.shard.mayShareEntries(with: shard) })
            defer { for record in files { record.file.close() } }
            let length = files.reduce(0) { $0 + $1.length }
            return try FinishedEntries(capacity: Int(length) / FinishedEntryCodec.recordLength) { take in
                for record in files {
                    try Self.read(record.file, record.length) { if shard.owns($0) { take($0) } }
                }
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// The names of a task's files that do not follow from their requests.
    func fileNames(of shard: Shard) throws(DownloadError) -> EntryNames {
        do {
            let files = try self.open(
                try self.names().filter { $0.kind == .names && $0.shard.mayShareEntries(with: shard) })
            defer { for record in files { record.file.close() } }
            return try EntryNames { take in
                for record in files {
                    try Self.lines(of: record.file) { lines in
                        for line in lines.split(separator: UInt8(ascii: "\n")) {
                            guard let (entry, name) = EntryNameCodec.decode(line), shard.owns(entry) else { continue }
                            take(entry, name)
                        }
                    }
                }
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// What any run of a task was about to put into place without a record in an attribute, except for entries that are
    /// finished.
    func placing(
        of shard: Shard, besides finished: FinishedEntries
    ) throws(DownloadError) -> [EntryFingerprint: [ContentSummary]] {
        do {
            let files = try self.open(
                try self.names().filter { $0.kind == .placing && $0.shard.mayShareEntries(with: shard) })
            defer { for record in files { record.file.close() } }
            var found: [EntryFingerprint: [ContentSummary]] = [:]
            for record in files {
                try Self.read(record.file, record.length, PlacingCodec.recordLength) { bytes in
                    guard let (entry, content) = PlacingCodec.decode(bytes), shard.owns(entry),
                        !finished.contains(entry.withoutPlacing)
                    else { return }
                    found[entry, default: []].append(content)
                }
            }
            return found
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    private func open(_ names: [Name]) throws -> [RecordFile] {
        var files: [RecordFile] = []
        do {
            for name in names {
                let path = self.path(of: name)
                // Another run of the task may have joined and removed it.
                guard let file = try self.file(path) else { continue }
                let status = try file.status()
                try self.storage.checkTrust(status, path)
                files.append(RecordFile(name: name, file: file, length: status.length))
            }
        } catch {
            for record in files { record.file.close() }
            throw error
        }
        return files
    }

    private func file(_ path: String) throws(StorageError) -> (any StorageFile)? {
        do throws(StorageError) {
            return try self.storage.open(path, .read)
        } catch  where error.condition == .notFound {
            return nil
        }
    }

    /// Calls `take` with every undamaged record of a finished entry, except headers.
    private static func read(
        _ file: any StorageFile, _ length: Int64, _ take: (EntryFingerprint) throws(StorageError) -> Void
    ) throws(StorageError) {
        let header = FinishedEntryCodec.header
        try Self.read(file, length, FinishedEntryCodec.recordLength) { record throws(StorageError) in
            if record.elementsEqual(header) { return }
            if let entry = FinishedEntryCodec.decode(record) { try take(entry) }
        }
    }

    /// Calls `take` with the bytes of every record.
    private static func read(
        _ file: any StorageFile, _ length: Int64, _ recordLength: Int,
        _ take: (UnsafeRawBufferPointer) throws(StorageError) -> Void
    ) throws(StorageError) {
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceLength, alignment: 16)
        defer { piece.deallocate() }
        var offset: Int64 = 0
        while offset < length {
            let wanted = Int(min(Int64(piece.count), length - offset))
            let count = try file.readFully(into: UnsafeMutableRawBufferPointer(rebasing: piece[..<wanted]), at: offset)
            guard count > 0 else { return }
            for start in stride(from: 0, to: count - recordLength + 1, by: recordLength) {
                try take(UnsafeRawBufferPointer(rebasing: piece[start..<start + recordLength]))
            }
            offset += Int64(count)
        }
    }

    /// Joins the files of a task's earlier runs into one, if there are many.
    ///
    /// - Parameter run: The current run, whose files are left alone. It also names the new file.
    func joinFinished(of shard: Shard, run: String) async throws(DownloadError) {
        let names = try self.names().filter { $0.kind == .finished && $0.shard == shard && $0.run != run }
        guard names.count >= Self.filesMax else { return }
        do {
            let files = try self.open(names)
            defer { for record in files { record.file.close() } }
            // A run that does not end, on a machine that was taken for dead, still appends to its file.
            let ended = files.filter { (try? $0.file.tryLock()) != .busy }
            guard ended.count >= Self.filesMax else { return }
            let path = self.path(of: Name(shard, run: "\(run)-joined", .finished))
            let joined = try self.create(path)
            defer { joined.close() }
            var buffer = FinishedEntryCodec.header
            var offset: Int64 = 0
            func flush() throws(StorageError) {
                try joined.writeFully(buffer, at: offset)
                offset += Int64(buffer.count)
                buffer.removeAll(keepingCapacity: true)
            }
            for record in ended {
                try Self.read(record.file, record.length) { entry throws(StorageError) in
                    buffer += FinishedEntryCodec.encode(entry)
                    if buffer.count >= Self.pieceLength { try flush() }
                }
            }
            try flush()
            try await joined.synchronize(metadata: true)
            try await self.storage.synchronize(directory: self.path)
            for record in ended { try self.storage.remove(self.path(of: record.name)) }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }
}
