import SegmentedDownloadCore
public import SystemPackage

/// Whether restored downloads run.
public enum RestorePolicy: Hashable, Sendable, CaseIterable {
    /// They are listed, and wait until they are resumed.
    case paused
    /// They run when their turn comes.
    case running
}

/// The interrupted downloads of a directory.
public struct Restoration: Sendable {
    /// A manifest that was not restored.
    public struct Omission: Hashable, Sendable {
        /// The destination's path.
        public let path: FilePath
        /// Code `state`: the manifest is damaged, or from a later version. `exists`: another process is fetching the file. `file`: the
        /// manifest cannot be read, or other users can write to it. `usage`, `policy`: its source cannot be fetched any more.
        /// `cancelled`: the group has ended.
        public let error: DownloadError
    }

    /// The interrupted downloads, sorted by path, including those that the group already had.
    public var downloads: [Download] = []
    /// The manifests that were not restored, sorted by path.
    public var omissions: [Omission] = []
}

extension DownloadGroup {
    /// Adds every interrupted download in a directory, with its name, options and user information. Nothing on disk is changed.
    ///
    /// Each has the destination ``DownloadRequest/Destination/file(_:)``, so adding the request that began it finds it only by
    /// the same ``DownloadRequest/id`` or file: see ``add(_:)``. A download of which nothing is on disk yet is not found; neither is
    /// one of unknown length.
    ///
    /// - Parameters:
    ///   - directory: The directory of the manifests; nil for the group's own. Subdirectories are not searched: restore those in
    ///     which requests have put files one by one.
    ///   - policy: Whether the downloads run, or wait until they are resumed. Those that the group already had are left as they
    ///     are.
    ///   - change: Sets what a manifest does not store, such as fields and credentials.
    /// - Throws: ``DownloadError`` with code `file` if the directory cannot be read.
    @discardableResult
    public func restore(
        from directory: FilePath? = nil, _ policy: RestorePolicy = .paused,
        _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws(DownloadError) -> Restoration {
        var restoration = Restoration()
        for path in try await SavedDownload.paths(in: directory ?? self.directory, storage: self.storage) {
            do throws(DownloadError) {
                let saved = try await SavedDownload(at: path, storage: self.storage)
                let download = try await self.restore(saved, policy, change)
                restoration.downloads.append(download)
            } catch {
                restoration.omissions.append(Restoration.Omission(path: path, error: error))
            }
        }
        return restoration
    }

    private func restore(
        _ saved: SavedDownload, _ policy: RestorePolicy, _ change: (inout DownloadRequest) -> Void
    ) async throws(DownloadError) -> Download {
        let source = try SourceURL(saved.source)
        if let listed = self.download(for: source, at: saved.path.string) { return listed }
        try await self.checkUnlocked(saved.path.string)
        var request = saved.request(for: source)
        change(&request)
        // Two manifests may have one id, from different groups or by a copy: the second download gets a number.
        if let id = request.id, self.download(id: id) != nil { request.id = nil }
        var progress = DownloadProgress()
        progress.bytesDone = saved.bytesDone
        progress.bytesDurable = saved.bytesDurable
        progress.bytesTotal = saved.bytesTotal
        return try self.add(request, restingAt: policy == .paused ? progress : nil, isResolved: true)
    }

    /// Throws if another process has locked the part. The lock is tried only if `/proc/locks` lists one: holding it even for a moment
    /// could make another process fail.
    private func checkUnlocked(_ path: String) async throws(DownloadError) {
        let part = DestinationPaths(path: path).part
        do throws(StorageError) {
            try await EngineThreads.aside { () throws(StorageError) in
                guard let status = try self.storage.status(of: part), status.kind == .file,
                    let holder = self.storage.lockHolder(of: status)
                else { return }
                let file = try self.storage.open(part, .update)
                defer { file.close() }
                guard try file.tryLock() == .busy else { return }
                throw StorageError(
                    call: "flock", path: part, errno: 0, condition: .exists,
                    text: "process \(holder) is fetching it already")
            }
        } catch {
            throw error.failure
        }
    }
}

extension SavedDownload {
    /// The request that continues it, without fields and credentials.
    ///
    /// - Throws: ``DownloadError`` with code `usage` or `policy` if its source cannot be fetched any more.
    package func request() throws(DownloadError) -> DownloadRequest { self.request(for: try SourceURL(self.source)) }

    fileprivate func request(for source: SourceURL) -> DownloadRequest {
        var request = DownloadRequest(source, to: .file(self.path))
        request.mirrors = self.mirrors.compactMap { try? SourceURL($0) }
        request.foreignSources = Set(self.foreignSources.compactMap { try? SourceURL($0) })
        request.id = self.id
        request.options = self.options
        request.userInfo = self.userInfo
        request.resumesPart = true
        return request
    }
}
