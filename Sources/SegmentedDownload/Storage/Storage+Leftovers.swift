import SegmentedDownloadCore

/// Removes what a crash between the last steps of an earlier run left beside a finished file.
extension Storage {
    /// Removes the part's name if it is a second name of the finished file: a crash after the hard link leaves both.
    func removeSecondName(_ paths: DestinationPaths) throws(StorageError) {
        guard let part = try self.status(of: paths.part), part.kind == .file,
            try self.status(of: paths.destination)?.isSameFile(as: part) == true
        else { return }
        try self.remove(paths.part)
    }

    /// Makes the name of a finished file durable and removes its manifest, unless there is a part.
    ///
    /// - Parameter hasRecord: Whether the file has the record of a finished download.
    func completePlacing(_ paths: DestinationPaths, hasRecord: Bool) async throws(StorageError) {
        guard try self.status(of: paths.part) == nil else { return }
        let hasManifest = try self.hasManifest(paths)
        // The process that renamed the file may have crashed before it synced the directory.
        if hasManifest || hasRecord { try await self.synchronize(directory: paths.directory) }
        // Another process may have begun to replace the file since the first check.
        if hasManifest, try self.status(of: paths.part) == nil {
            try self.removeSetAside(of: paths)
            try self.removeManifests(paths)
        }
    }
}
