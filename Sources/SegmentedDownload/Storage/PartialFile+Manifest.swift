import Synchronization

/// How the manifest is replaced and removed as a whole.
extension PartialFile {
    /// Writes header and claims to a draft, syncs it, renames it into place, and appends to it from then on.
    func writeManifest(durableCount: Int) async throws(StorageError) {
        while try await !self.tryWriteManifest(durableCount: durableCount) {
            // Claims were withdrawn meanwhile, so the draft is obsolete. This is rare.
        }
    }

    private func tryWriteManifest(durableCount: Int) async throws(StorageError) -> Bool {
        let draft = ManifestDraft(of: self.log.withLock { $0 }, durableCount: durableCount)
        // Bytes of a part that was in memory were not written when they were claimed.
        if self.inMemory != nil { try self.file.writeHeldBack(in: 0..<self.header.completeLength) }
        try self.storage.removeManifest(self.paths.manifestDraft)
        let file = try self.storage.open(self.paths.manifestDraft, .createPrivate)
        try file.writeFully(draft.bytes, at: 0)
        // A manifest with durable claims is replaced only by one that is durable too.
        let isSynced = self.syncPolicy == .checkpoint || draft.durableCount > 0
        if isSynced { try await file.synchronize(metadata: true) }
        try self.storage.rename(file, from: self.paths.manifestDraft, to: self.paths.manifest, replacing: true)
        if isSynced { try await self.storage.synchronize(directory: self.paths.directory) }
        return try self.change { (log) throws(StorageError) in try log.move(to: file, from: draft) }
    }

    /// Removes the manifest that this run wrote, if it is still in place, and a leftover draft.
    ///
    /// The manifest's random id identifies it: some file systems number a file anew when it is renamed.
    func removeManifest() throws(StorageError) {
        if try self.storage.isManifest(self.paths.manifestDraft) == true {
            try self.storage.remove(self.paths.manifestDraft)
        }
        guard let own = try self.log.withLock({ $0.file })?.status(),
            let found = try self.storage.status(of: self.paths.manifest), found.kind == .file
        else { return }
        guard found.isSameFile(as: own) || (try? self.storage.header(of: self.paths.manifest))?.id == self.header.id
        else { return }
        try self.storage.remove(self.paths.manifest)
    }
}
