import SegmentedDownloadCore

/// A note about empty files that segdl may have created while it moves a finished part into place, on file systems where that
/// takes several calls (``Storage/renameOtherwise(_:to:keepsIdentity:trial:)``).
///
/// It has the path of the manifest's draft, is made durable first, and is removed with the manifest. A crash leaves part,
/// manifest and note, and perhaps an empty destination, or the empty files that hard links were tried with.
/// ``Storage/removeAbandonedClaim(_:)`` runs before every survey and removes the empty files, so that the next run finds
/// a complete part and places it. An empty file without a note is never removed, nor is a file with content.
struct NameClaim: Hashable, Sendable {
    /// The claimed name in the part's directory.
    let name: String

    /// Begins like a manifest, so that code that removes manifests removes the claim too. No manifest has this version.
    private static let mark = ManifestCodec.magic + [0xFF, 0xFF] + Array("claims ".utf8)

    /// 4096 bytes: more than the longest name with the mark.
    fileprivate static let lengthMaximum = 4096

    init(name: String) { self.name = name }

    fileprivate init?(decoding bytes: [UInt8]) {
        guard bytes.starts(with: Self.mark), bytes.last == UInt8(ascii: "\n") else { return nil }
        let name = String(decoding: bytes.dropFirst(Self.mark.count).dropLast(), as: UTF8.self)
        guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "/")) else { return nil }
        self.name = name
    }

    fileprivate var encoded: [UInt8] { Self.mark + Array(self.name.utf8) + [UInt8(ascii: "\n")] }
}

extension Storage {
    /// Renames a locked part to a name in its directory that does not exist, where that takes several calls.
    ///
    /// - Parameter isDurable: Whether the note is synced.
    /// - Throws: ``StorageError`` with condition `exists` if the name is taken.
    func place(_ paths: DestinationPaths, claiming target: DestinationPaths, isDurable: Bool) async throws(StorageError)
    {
        // A hard link needs no note: a crash leaves two names of one complete file.
        if try self.renameByKnownLink(paths.part, to: target.destination) { return }
        try self.removeManifest(paths.manifestDraft)
        let note = try self.open(paths.manifestDraft, .createPrivate)
        defer { note.close() }
        let bytes = NameClaim(name: target.name).encoded
        let written: Result<Void, StorageError> = bytes.withUnsafeBytes { buffer in
            do throws(StorageError) {
                return .success(try note.writeFully(buffer, at: 0))
            } catch {
                return .failure(error)
            }
        }
        do throws(StorageError) {
            try written.get()
            if isDurable {
                try await note.synchronize(metadata: true)
                try await self.synchronize(directory: paths.directory)
            }
            try self.renameOtherwise(paths.part, to: target.destination)
        } catch {
            try? self.remove(paths.manifestDraft)
            throw error
        }
    }

    /// Removes the empty files that an interrupted run created to find a way to a name for this part, and to claim it.
    func removeAbandonedClaim(_ paths: DestinationPaths) throws(StorageError) {
        guard let claim = try self.claim(paths), let status = try self.status(of: paths.part), status.kind == .file,
            status.ownership.objection(user: self.user) == nil
        else { return }
        let part = try self.open(paths.part, .update)
        defer { part.close() }
        // Another process may be between steps 2 and 3.
        guard try part.tryLock() != .busy, try self.status(of: paths.part)?.isSameFile(as: status) == true else {
            return
        }
        let target = DestinationPaths(directory: paths.directory, name: claim.name).destination
        for path in [target] + LinkFacts.trials(beside: paths.part) {
            guard let claimed = try self.status(of: path), claimed.kind == .file, claimed.length == 0 else { continue }
            // The trials may be two names of one file.
            if path != target || claimed.linkCount == 1 { try self.remove(path) }
        }
        try self.remove(paths.manifestDraft)
    }

    private func claim(_ paths: DestinationPaths) throws(StorageError) -> NameClaim? {
        guard let status = try self.status(of: paths.manifestDraft), status.kind == .file,
            status.length <= NameClaim.lengthMaximum, status.ownership.objection(user: self.user) == nil
        else { return nil }
        let file: any StorageFile
        do throws(StorageError) {
            file = try self.open(paths.manifestDraft, .read)
        } catch  where error.condition == .permission || error.condition == .notFound {
            return nil
        }
        defer { file.close() }
        return NameClaim(decoding: try file.contents(limit: NameClaim.lengthMaximum))
    }
}
