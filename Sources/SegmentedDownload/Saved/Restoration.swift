import SegmentedDownloadCore

/// What becomes of interrupted downloads that are found again.
public enum RestorePolicy: Hashable, Sendable, CaseIterable {
    /// They are listed, and rest until they are resumed.
    case paused
    /// They go on as their turn comes.
    case running
}

/// What a folder of manifests held.
public struct Restoration: Sendable {
    /// Something that was left alone.
    public struct Omission: Hashable, Sendable {
        /// The destination's path.
        public let path: String
        /// `state` for a manifest that is damaged, or none; `exists` for a download another process is at; `usage` for what can
        /// no longer be fetched.
        public let error: DownloadError
    }

    /// The interrupted downloads, by path; those that were listed before included.
    public var downloads: [Download] = []
    /// What was left alone, by path.
    public var omissions: [Omission] = []
}

extension DownloadGroup {
    /// Adds every interrupted download that a directory holds, with the name, the priority and the user information it was begun
    /// with. Nothing on disk is touched: what is damaged, foreign or another process's is reported.
    ///
    /// - Parameters:
    ///   - directory: Where the manifests are; the group's own if absent. Directories within are not searched.
    ///   - change: Gives what a manifest does not keep, such as fields and limits.
    /// - Throws: ``DownloadError`` with code `file` if the directory cannot be read.
    @discardableResult
    public func restore(
        from directory: String? = nil, _ policy: RestorePolicy = .paused,
        _ change: (inout DownloadRequest) -> Void = { _ in }
    ) throws(DownloadError) -> Restoration {
        var restoration = Restoration()
        for path in try SavedDownload.paths(in: directory ?? self.directory) {
            do throws(DownloadError) {
                let download = try self.restore(try SavedDownload(at: path), policy, change)
                restoration.downloads.append(download)
            } catch {
                restoration.omissions.append(Restoration.Omission(path: path, error: error))
            }
        }
        return restoration
    }

    private func restore(
        _ saved: SavedDownload, _ policy: RestorePolicy, _ change: (inout DownloadRequest) -> Void
    ) throws(DownloadError) -> Download {
        let source = try SourceURL(saved.source)
        if let listed = self.download(for: source, at: saved.path) { return listed }
        try self.checkUnlocked(saved.path)
        var request = DownloadRequest(source, to: .file(saved.path))
        request.mirrors = saved.mirrors.compactMap { try? SourceURL($0) }
        request.foreignSources = Set(saved.foreignSources.compactMap { try? SourceURL($0) })
        request.id = saved.id
        request.priority = saved.priority
        request.userInfo = saved.userInfo
        change(&request)
        // Two files can have been given one name, by another group or a copy: the second one gets a number.
        if let id = request.id, self.download(id: id) != nil { request.id = nil }
        var progress = DownloadProgress()
        progress.bytesDone = saved.bytesDone
        progress.bytesTotal = saved.bytesTotal
        return try self.add(request, restingAt: policy == .paused ? progress : nil, isResolved: true)
    }

    /// The lock of a part says whether a process is at it. It is taken only to confirm what the system's list of locks says: to try
    /// every part would make others fail that come just then.
    private func checkUnlocked(_ path: String) throws(DownloadError) {
        let paths = DestinationPaths(path: path)
        do throws(StorageError) {
            guard let status = try self.storage.status(of: paths.part), status.kind == .file,
                let holder = self.storage.lockHolder(of: status)
            else { return }
            let file = try self.storage.open(paths.part, .update)
            defer { file.close() }
            guard try file.tryLock() == .busy else { return }
            throw StorageError(
                call: "flock", path: paths.part, errno: 0, condition: .exists,
                text: "process \(holder) is fetching it already")
        } catch {
            throw DownloadError(error.failure)
        }
    }
}
