import SegmentedDownloadCore

/// The paths of a part that belongs to another file and was moved out of the way.
///
/// It is kept as `NAME.segdl-old.segdl-part` with its manifest until the new download is complete.
/// ``SavedDownload/paths(in:)`` finds it as an interrupted download. No destination has such a name.
extension DestinationPaths {
    package static let setAsideSuffix = ".segdl-old"

    var setAside: DestinationPaths {
        DestinationPaths(directory: self.directory, name: self.name + Self.setAsideSuffix)
    }
}

extension Storage {
    /// Moves part and manifest to the names for a part set aside. An earlier part with these names stays, and this one
    /// is not moved.
    ///
    /// - Returns: Whether they were moved.
    func setAside(_ paths: DestinationPaths) async throws(StorageError) -> Bool {
        let aside = paths.setAside
        do throws(StorageError) {
            guard try self.isFree(aside), try self.isManifest(paths.manifest) == true else { return false }
            try await self.move(both: paths, to: aside)
            return true
        } catch  where error.condition == .nameTooLong {
            // The file system does not allow the longer name.
            return false
        }
    }

    /// Moves back what was set aside, because the new download could not begin.
    func restoreSetAside(_ paths: DestinationPaths) async throws(StorageError) {
        guard try self.isFree(paths) else { return }
        try await self.move(both: paths.setAside, to: paths)
    }

    /// Whether no part has these names. A manifest alone is left over from an interrupted move and is removed.
    private func isFree(_ paths: DestinationPaths) throws(StorageError) -> Bool {
        guard try self.status(of: paths.part) == nil, try self.isManifest(paths.manifest) != false else { return false }
        try self.removeManifests(paths)
        return true
    }

    /// Moves part and manifest. The manifest is copied before the part is renamed, so that the part has a manifest
    /// beside it at every moment.
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

    /// Renames a locked part to a name that was found to be free.
    private func renameExclusively(_ old: String, to new: String) throws(StorageError) {
        do throws(StorageError) {
            try self.rename(old, to: new, replacing: false)
        } catch  where error.condition == .unsupported {
            try self.rename(old, to: new, replacing: true)
        }
    }

    /// Deletes the part that was set aside. Files of these names that are not the user's own stay.
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
        // Another process may have resumed it as an interrupted download.
        guard try file.tryLock() != .busy, try self.status(of: aside.part)?.isSameFile(as: file.status()) == true else {
            return
        }
        // The manifest is removed last: the next completed download looks for it.
        try self.remove(aside.part)
        try self.removeManifests(aside)
    }
}
