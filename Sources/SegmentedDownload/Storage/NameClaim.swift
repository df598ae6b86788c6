import SegmentedDownloadCore

/// Places a finished part without replacing anything where the file system can neither rename so nor make hard links: FAT, exFAT
/// and many FUSE file systems.
///
/// 1. A note with the destination's name is written under the name of the manifest's draft, and made durable.
/// 2. The destination is created, empty (`O_CREAT | O_EXCL`). This fails if the name exists.
/// 3. The part is renamed over the empty file. The note goes with the manifest.
///
/// A crash between the steps leaves part, manifest and note, and perhaps an empty destination. ``Storage/removeAbandonedClaim(_:)``,
/// which comes before every survey, removes that: the next run finds a complete part and places it. An empty file without a note is
/// never taken for a claim, nor is a file with content. Between 2 and 3 another program could replace the empty file; it is looked at
/// immediately before the rename.
struct NameClaim: Hashable, Sendable {
    /// The name in the part's directory that is claimed.
    let name: String

    /// Behind a manifest's mark, so that whatever clears manifests away takes the note, too; no version of a manifest has this.
    private static let mark = ManifestCodec.magic + [0xFF, 0xFF] + Array("claims ".utf8)

    /// More than the longest name with the mark.
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
    /// Renames a locked part to a destination beside it that does not exist, by claiming that name first.
    ///
    /// - Parameter isDurable: whether the note survives a power cut.
    /// - Throws: ``StorageError`` with condition `exists` if the name is taken.
    func place(_ paths: DestinationPaths, claiming target: DestinationPaths, isDurable: Bool) async throws(StorageError)
    {
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
            try self.rename(paths.part, claiming: target.destination)
        } catch {
            try? self.remove(paths.manifestDraft)
            throw error
        }
    }

    private func rename(_ path: String, claiming target: String) throws(StorageError) {
        let claim = try self.open(target, .create)
        defer { claim.close() }
        do throws(StorageError) {
            guard try self.isEmpty(target, sameAs: claim) else {
                throw StorageError(
                    call: "rename", path: target, errno: 0, condition: .exists,
                    text: "another program has taken the name")
            }
            try self.rename(path, to: target, replacing: true)
        } catch {
            if (try? self.isEmpty(target, sameAs: claim)) == true { try? self.remove(target) }
            throw error
        }
    }

    private func isEmpty(_ path: String, sameAs file: any StorageFile) throws(StorageError) -> Bool {
        let own = try file.status()
        guard let named = try self.status(of: path) else { return false }
        return named.kind == .file && named.isSameFile(as: own) && named.length == 0
    }

    /// Removes the empty file by which a run that ended too early claimed a name for this part.
    func removeAbandonedClaim(_ paths: DestinationPaths) throws(StorageError) {
        guard let claim = try self.claim(paths), let status = try self.status(of: paths.part), status.kind == .file,
            status.ownership.objection(user: self.user) == nil
        else { return }
        let part = try self.open(paths.part, .update)
        defer { part.close() }
        // Another process may be at step 2 or 3.
        guard try part.tryLock() != .busy, try self.status(of: paths.part)?.isSameFile(as: status) == true else {
            return
        }
        let target = DestinationPaths(directory: paths.directory, name: claim.name).destination
        if let claimed = try self.status(of: target), claimed.kind == .file, claimed.linkCount == 1, claimed.length == 0
        {
            try self.remove(target)
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
