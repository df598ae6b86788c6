import SegmentedDownloadCore

/// Moves a finished part into place, without replacing another file, on file systems that have neither an exclusive
/// rename nor hard links: FAT, exFAT and many FUSE file systems.
///
/// 1. A claim with the destination's name is written to the path of the manifest's draft, and made durable.
/// 2. The destination is created empty (`O_CREAT | O_EXCL`). This fails if the name exists.
/// 3. The part is renamed over the empty file. The claim is removed with the manifest.
///
/// A crash between the steps leaves part, manifest and claim, and perhaps an empty destination.
/// ``Storage/removeAbandonedClaim(_:)`` runs before every survey and removes the empty file, so that the next run finds
/// a complete part and places it. An empty file without a claim is never removed, nor is a file with content. Another
/// program could replace the empty file between steps 2 and 3; the file is checked immediately before the rename.
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
    /// Renames a locked part to a name in its directory that does not exist, by claiming that name first.
    ///
    /// - Parameter isDurable: Whether the claim is synced.
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

    /// Removes the empty file that an interrupted run created to claim a name for this part.
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
