import SegmentedDownloadCore

/// Finds files that are demonstrably downloads of this program, and deletes no others.
struct OwnedFiles: Sendable {
    enum Item: Hashable, Sendable {
        /// A file with this program's attribute, whose length and modification time match it. Its content is examined before
        /// it is deleted.
        case finished(path: String, length: Int64)
        /// A valid manifest and its part; lengths as on disk.
        case interrupted(DestinationPaths, part: Int64, manifest: Int64)
    }

    /// The items found, and the errors of what could not be examined.
    struct Listing: Sendable {
        var items: [Item] = []
        var problems: [StorageError] = []
    }

    let storage: any Storage

    /// 32: deeper directories are not searched.
    private static let depthMaximum = 32

    /// The items in a directory and its subdirectories, in order of name. What cannot be examined is skipped and
    /// listed.
    ///
    /// - Throws: ``StorageError`` if the directory itself cannot be read.
    func listing(of directory: String) throws(StorageError) -> Listing {
        var listing = Listing()
        try self.list(directory, depth: 0, into: &listing)
        return listing
    }

    private func list(_ directory: String, depth: Int, into listing: inout Listing) throws(StorageError) {
        guard depth < Self.depthMaximum else { return }
        for name in try self.storage.names(in: directory).sorted() where name != "." && name != ".." {
            do throws(StorageError) {
                try self.look(at: name, in: directory, depth: depth, into: &listing)
            } catch {
                listing.problems.append(error)
            }
        }
    }

    private func look(
        at name: String, in directory: String, depth: Int, into listing: inout Listing
    ) throws(StorageError) {
        let paths = DestinationPaths(directory: directory, name: name)
        switch try self.storage.status(of: paths.destination)?.kind {
        case .directory: try self.list(paths.destination, depth: depth + 1, into: &listing)
        case .file:
            if let stem = name.stem(before: DestinationPaths.manifestSuffix) {
                let own = DestinationPaths(directory: directory, name: stem)
                if let item = try self.interrupted(own) { listing.items.append(item) }
            } else if let item = try self.finished(paths.destination) {
                listing.items.append(item)
            }
        case .link, .other, nil: break
        }
    }

    /// The finished file and the interrupted download of a destination.
    func items(at path: String) throws(StorageError) -> [Item] {
        [try self.finished(path), try self.interrupted(DestinationPaths(path: path))].compactMap { $0 }
    }

    /// - Parameter verifies: Whether the content must be the one that was downloaded.
    private func finished(_ path: String, verifies: Bool = false) throws(StorageError) -> Item? {
        guard let status = try self.storage.status(of: path), status.kind == .file, status.linkCount == 1 else {
            return nil
        }
        let file: any StorageFile
        do throws(StorageError) {
            file = try self.storage.open(path, .read)
        } catch {
            // A file that this user may not read is not a download of this user.
            guard error.condition == .permission || error.condition == .notFound else { throw error }
            return nil
        }
        defer { file.close() }
        guard let record = file.attribute(FinishedRecord.attribute).flatMap({ FinishedRecord(decoding: $0) }),
            record.fits(status)
        else { return nil }
        if verifies {
            do {
                guard try record.describes(file, status) else { return nil }
            } catch let error as StorageError {
                throw error
            } catch {
                return nil
            }
            guard try self.storage.status(of: path)?.isUnchanged(since: status) == true else { return nil }
        }
        return .finished(path: path, length: status.length)
    }

    private func interrupted(_ paths: DestinationPaths) throws(StorageError) -> Item? {
        guard let status = try self.storage.status(of: paths.manifest), status.kind == .file, status.linkCount == 1,
            let header = try self.storage.header(of: paths.manifest)
        else { return nil }
        guard let part = try self.storage.status(of: paths.part) else {
            return .interrupted(paths, part: 0, manifest: status.length)
        }
        // A part with another identity than the manifest records may belong to another program. Neither file is
        // touched.
        guard part.kind == .file, part.linkCount == 1, part.identity == header.partIdentity else {
            return nil
        }
        return .interrupted(paths, part: part.allocated, manifest: status.length)
    }

    /// When the part or the manifest was last written, in nanoseconds since 1970.
    func lastWritten(_ paths: DestinationPaths) throws(StorageError) -> Int64 {
        max(
            try self.storage.status(of: paths.part)?.modified ?? 0,
            try self.storage.status(of: paths.manifest)?.modified ?? 0)
    }

    /// Deletes an item.
    ///
    /// - Returns: Whether it was deleted; `false` if another process has locked it or it has changed since it was
    ///   found.
    func delete(_ item: Item) throws(StorageError) -> Bool {
        switch item {
        case .finished(let path, _):
            guard try self.finished(path, verifies: true) == item else { return false }
            try self.storage.remove(path)
        case .interrupted(let paths, _, _):
            guard try self.storage.status(of: paths.part) != nil else { return try self.deleteManifest(of: paths) }
            let part = try self.storage.open(paths.part, .update)
            defer { part.close() }
            switch try part.tryLock() {
            case .taken: break
            case .busy: return false
            case .unsupported:
                throw StorageError(
                    call: "flock", path: paths.part, errno: 0, condition: .unsupported,
                    text: "the file system has no locks, so another process may be using it")
            }
            // Checked under the lock: another process may meanwhile have finished the part and begun another of that
            // name.
            guard try self.interrupted(paths) != nil, try self.storage.status(of: paths.part, isOf: part) else {
                return false
            }
            let manifest = try self.storage.open(paths.manifest, .read)
            defer { manifest.close() }
            try self.storage.remove(paths.part)
            // From here on another process may write its own manifest.
            if try self.storage.status(of: paths.manifest, isOf: manifest) { try self.storage.remove(paths.manifest) }
        }
        return true
    }

    /// Deletes a manifest whose part is gone.
    private func deleteManifest(of paths: DestinationPaths) throws(StorageError) -> Bool {
        guard try self.interrupted(paths) != nil else { return false }
        let manifest = try self.storage.open(paths.manifest, .read)
        defer { manifest.close() }
        guard try self.storage.status(of: paths.part) == nil,
            try self.storage.status(of: paths.manifest, isOf: manifest)
        else { return false }
        try self.storage.remove(paths.manifest)
        return true
    }
}

extension Storage {
    /// The header of a manifest; `nil` if the file is none.
    func header(of path: String) throws(StorageError) -> Manifest.Header? {
        let file = try self.open(path, .read)
        defer { file.close() }
        // Only the header is needed, not the claims.
        return try? ManifestCodec.decode(try file.contents(limit: 1 << 20)).header
    }

    /// Whether a path names the open file.
    fileprivate func status(of path: String, isOf file: any StorageFile) throws(StorageError) -> Bool {
        let own = try file.status()
        return try self.status(of: path)?.isSameFile(as: own) == true
    }
}

extension String {
    /// The text before a suffix; `nil` if the text lacks the suffix or consists of it.
    fileprivate func stem(before suffix: String) -> String? {
        guard self.hasSuffix(suffix), self.utf8.count > suffix.utf8.count else { return nil }
        return String(self.dropLast(suffix.count))
    }
}
