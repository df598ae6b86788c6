import SegmentedDownloadCore

/// The part of another file that was found where a download's own part belongs.
///
/// It is kept under a name of its own until the download is complete, as an interrupted download that `segdl status` and
/// `segdl resume` find: `NAME.segdl-old.segdl-part` and its manifest. No destination has such a name.
extension DestinationPaths {
    package static let setAsideSuffix = ".segdl-old"

    var setAside: DestinationPaths {
        DestinationPaths(directory: self.directory, name: self.name + Self.setAsideSuffix)
    }
}

extension Storage {
    /// Keeps part and manifest under other names. One that was set aside before stays, and this one is given up instead.
    ///
    /// - Returns: Whether they have the other names now.
    func setAside(_ paths: DestinationPaths) async throws(StorageError) -> Bool {
        let aside = paths.setAside
        do throws(StorageError) {
            guard try self.isFree(aside), try self.isManifest(paths.manifest) == true else { return false }
            try await self.move(both: paths, to: aside)
            return true
        } catch  where error.condition == .nameTooLong {
            // There is no longer name.
            return false
        }
    }

    /// Takes back what was just set aside: the new download could not be begun.
    func bringBack(_ paths: DestinationPaths) async throws(StorageError) {
        guard try self.isFree(paths) else { return }
        try await self.move(both: paths.setAside, to: paths)
    }

    /// Whether no part has these names. A manifest alone is what a crash left of a move.
    private func isFree(_ paths: DestinationPaths) throws(StorageError) -> Bool {
        guard try self.status(of: paths.part) == nil, try self.isManifest(paths.manifest) != false else { return false }
        try self.removeManifests(paths)
        return true
    }

    /// The manifest is copied, not renamed: at every moment the part has one beside it, whatever name it has by then.
    private func move(both paths: DestinationPaths, to target: DestinationPaths) async throws(StorageError) {
        do throws(StorageError) {
            try await self.copy(manifest: paths.manifest, to: target.manifest)
            try await self.synchronize(directory: target.directory)
            try self.renameExclusively(paths.part, to: target.part)
        } catch {
            try? self.removeManifests(target)
            throw error
        }
        do throws(StorageError) {
            try await self.synchronize(directory: target.directory)
            try self.removeManifests(paths)
        } catch {
            try? self.renameExclusively(target.part, to: paths.part)
            try? self.removeManifests(target)
            throw error
        }
    }

    private func copy(manifest: String, to target: String) async throws(StorageError) {
        let original = try self.open(manifest, .read)
        defer { original.close() }
        let bytes = try original.contents(limit: Surveyor.manifestLengthMaximum)
        let copy = try self.open(target, .createPrivate)
        defer { copy.close() }
        try copy.writeFully(bytes, at: 0)
        try await copy.synchronize(metadata: true)
    }

    /// The new name is known to be free, and the part is locked.
    private func renameExclusively(_ old: String, to new: String) throws(StorageError) {
        do throws(StorageError) {
            try self.rename(old, to: new, replacing: false)
        } catch  where error.condition == .unsupported {
            try self.rename(old, to: new, replacing: true)
        }
    }

    /// Deletes what was set aside; leaves files of these names that are not the user's own.
    func removeSetAside(of paths: DestinationPaths) throws(StorageError) {
        let aside = paths.setAside
        do throws(StorageError) {
            guard try self.status(of: aside.manifest) != nil else { return }
        } catch  where error.condition == .nameTooLong {
            return
        }
        guard let part = try self.status(of: aside.part) else { return try self.removeManifests(aside) }
        guard part.kind == .file, part.ownership.objection(user: self.user) == nil else { return }
        let file = try self.open(aside.part, .update)
        defer { file.close() }
        // Another process may be at it: it is an interrupted download like others.
        guard try file.tryLock() != .busy, try self.status(of: aside.part)?.isSameFile(as: file.status()) == true else {
            return
        }
        // The manifest last: it is what the next completion looks for.
        try self.remove(aside.part)
        try self.removeManifests(aside)
    }
}
