import SegmentedDownloadCore

/// How a file that is in memory becomes the destination: written to a file without a name, which gets its name once it is
/// complete and durable. No other process ever sees it unfinished, and a crash leaves nothing behind.
extension Finisher {
    /// Verifies the file and puts it into place.
    ///
    /// - Returns: `nil` if the file system does not support this. Then nothing has happened.
    func place(_ memory: MemoryFile, length: Int64, unless interruption: Latch) async throws -> Result? {
        let (claims, crc) = try self.settle(length: length)
        let verified = try await self.judged(length: length, crc: crc, unless: interruption)
        guard let file = try self.storage.openUnnamed(for: self.part.paths.destination) else { return nil }
        var isPlaced = false
        defer { if !isPlaced { file.close() } }
        try memory.copy(to: file)
        if self.keepsRemoteTime, let date = self.resource.validator.lastModified {
            try file.setModified(date.secondsSinceEpoch)
        }
        let status = try file.status()
        let record = try self.leaveRecord(of: verified, crc: crc, on: file, status, claims)
        if self.part.syncPolicy != .none { try await file.synchronize(metadata: true) }
        if record == nil { await self.recordPlacing(length: length, crc: crc) }
        guard try self.name(file) else { return nil }
        isPlaced = true
        memory.use(file)
        self.part.markPlaced()
        if self.part.syncPolicy != .none { try await self.synchronizeDirectory(of: self.part.paths) }
        self.part.close()
        return Result(file: verified, paths: self.part.paths, status: status)
    }

    /// Gives the file its name.
    ///
    /// - Returns: Whether it succeeded; `false` if the system does not allow it.
    private func name(_ file: any StorageFile) throws -> Bool {
        do {
            try self.storage.name(file, self.part.paths.destination)
            return true
        } catch {
            switch error.condition {
            case .exists: throw self.nameTaken
            case .unsupported: return false
            default: throw error
            }
        }
    }
}
