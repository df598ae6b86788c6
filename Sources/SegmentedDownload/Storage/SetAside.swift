import SegmentedDownloadCore

/// The paths of parts that belong to other files and were moved out of the way.
///
/// One is kept as `NAME.segdl-old.segdl-part`, or `NAME.segdl-old-2.segdl-part` and so on, with its manifest until the new
/// download is complete. Its manifest ends with ``Manifest/Record/setAside``: another download of the user may have such a
/// name. ``SavedDownload/paths(in:)`` finds it as an interrupted download.
extension DestinationPaths {
    package static let setAsideSuffix = ".segdl-old"

    /// 9: as many URLs are rarely tried for one name.
    package static let setAsideMax = 9

    /// - Parameter slot: From 1 to ``setAsideMax``.
    package func setAside(slot: Int) -> DestinationPaths {
        let number = slot == 1 ? "" : "-\(slot)"
        return DestinationPaths(directory: self.directory, name: self.name + Self.setAsideSuffix + number)
    }
}

extension Storage {
    /// Moves part and manifest to the first free names for a part set aside, and marks the manifest.
    ///
    /// - Returns: The new paths; `nil` if no name is free, or the file system does not allow names of that length. Then the
    ///   part was not moved.
    func setAside(_ paths: DestinationPaths) async throws(StorageError) -> DestinationPaths? {
        for slot in 1...DestinationPaths.setAsideMax {
            let aside = paths.setAside(slot: slot)
            do throws(StorageError) {
                guard try self.status(of: aside.destination) == nil, try self.isFree(aside) else { continue }
            } catch  where error.condition == .nameTooLong {
                return nil
            }
            return try await self.move(both: paths, to: aside, isSetAside: true) ? aside : nil
        }
        return nil
    }

    /// Moves back a part that was set aside, because the new download could not begin.
    func restoreSetAside(_ aside: DestinationPaths, to paths: DestinationPaths) async throws(StorageError) {
        guard try self.isFree(paths) else { return }
        _ = try await self.move(both: aside, to: paths, isSetAside: false)
    }

    /// Whether no part has these names. A manifest alone is left over from an interrupted move and is removed.
    private func isFree(_ paths: DestinationPaths) throws(StorageError) -> Bool {
        guard try self.status(of: paths.part) == nil, try self.isManifest(paths.manifest) != false else { return false }
        try self.removeManifests(paths)
        return true
    }

    /// Moves part and manifest. The manifest is copied before the part is renamed, so that the part has a manifest
    /// beside it at every moment.
    ///
    /// - Parameter isSetAside: Whether the manifest gets the mark of a part that was set aside, or loses it.
    /// - Returns: Whether they were moved; `false` if there is no readable manifest.
    private func move(
        both paths: DestinationPaths, to target: DestinationPaths, isSetAside: Bool
    ) async throws(StorageError) -> Bool {
        guard let bytes = try self.manifest(paths).flatMap({ ManifestCodec.encoded($0, setAside: isSetAside) }) else {
            return false
        }
        do throws(StorageError) {
            try await self.create(manifest: target.manifest, bytes)
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
        return true
    }

    /// The bytes of a manifest; `nil` if there is none.
    private func manifest(_ paths: DestinationPaths) throws(StorageError) -> [UInt8]? {
        guard try self.isManifest(paths.manifest) == true else { return nil }
        let file = try self.open(paths.manifest, .read)
        defer { file.close() }
        return try file.contents(limit: Surveyor.manifestLengthMaximum)
    }

    private func create(manifest path: String, _ bytes: [UInt8]) async throws(StorageError) {
        let file = try self.open(path, .createPrivate)
        defer { file.close() }
        try file.writeFully(bytes, at: 0)
        try await file.synchronize(metadata: true)
    }

    /// Deletes the parts that were set aside. Other downloads with their names stay, and so do files of other users.
    func removeSetAside(of paths: DestinationPaths) throws(StorageError) {
        // The first one last: it is looked for to learn whether there are any.
        for slot in (1...DestinationPaths.setAsideMax).reversed() {
            do throws(StorageError) {
                try self.remove(setAside: paths.setAside(slot: slot))
            } catch  where error.condition == .nameTooLong {
                // A file with such a name cannot have been set aside.
            }
        }
    }

    private func remove(setAside aside: DestinationPaths) throws(StorageError) {
        guard try self.status(of: aside.manifest) != nil else { return }
        guard let part = try self.status(of: aside.part) else {
            // Left over from an interrupted move or removal, unless a file is about to become a part.
            if try self.status(of: aside.destination) == nil { try self.removeManifests(aside) }
            return
        }
        guard part.kind == .file, part.ownership.objection(user: self.user) == nil else { return }
        let file = try self.open(aside.part, .update)
        defer { file.close() }
        // Another process may be resuming it as an interrupted download, or have done so.
        guard try file.tryLock() != .busy, try self.status(of: aside.part)?.isSameFile(as: file.status()) == true,
            try self.isSetAside(aside)
        else { return }
        // The manifest is removed last: the next completed download looks for it.
        try self.remove(aside.part)
        try self.removeManifests(aside)
    }

    /// Whether the manifest states that its part was set aside, and is the user's.
    private func isSetAside(_ aside: DestinationPaths) throws(StorageError) -> Bool {
        guard let status = try self.status(of: aside.manifest), status.ownership.objection(user: self.user) == nil,
            let bytes = try self.manifest(aside)
        else { return false }
        return (try? ManifestCodec.decode(bytes))?.isSetAside == true
    }
}
