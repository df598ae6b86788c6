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
    /// Renames part and manifest. One that was set aside before stays, and this one is given up instead.
    ///
    /// A crash between the two renames leaves a part without a manifest: it is deleted with the next completion.
    ///
    /// - Returns: Whether they were renamed.
    func setAside(_ paths: DestinationPaths) throws(StorageError) -> Bool {
        let aside = paths.setAside
        guard try self.status(of: aside.part) == nil, try self.status(of: aside.manifest) == nil,
            try self.isManifest(paths.manifest) == true
        else { return false }
        try self.rename(both: paths, to: aside)
        return true
    }

    /// Takes back what was just set aside: the new download could not be begun.
    func bringBack(_ paths: DestinationPaths) throws(StorageError) {
        guard try self.status(of: paths.part) == nil, try self.status(of: paths.manifest) == nil else { return }
        try self.rename(both: paths.setAside, to: paths)
    }

    /// The new names are known to be free, and the part is locked.
    private func rename(both paths: DestinationPaths, to target: DestinationPaths) throws(StorageError) {
        for (old, new) in [(paths.part, target.part), (paths.manifest, target.manifest)] {
            do throws(StorageError) {
                try self.rename(old, to: new, replacing: false)
            } catch  where error.condition == .unsupported {
                try self.rename(old, to: new, replacing: true)
            }
        }
    }

    /// Deletes what was set aside; leaves files of these names that are not the user's own.
    func removeSetAside(of paths: DestinationPaths) throws(StorageError) {
        let aside = paths.setAside
        guard let part = try self.status(of: aside.part), part.kind == .file,
            part.ownership.objection(user: self.user) == nil
        else { return }
        let file = try self.open(aside.part, .update)
        defer { file.close() }
        // Another process may be at it: it is an interrupted download like others.
        guard try file.tryLock() != .busy, try self.status(of: aside.part)?.isSameFile(as: file.status()) == true else {
            return
        }
        // The manifest first: without it the part is of no use to anybody.
        try self.removeManifests(aside)
        try self.remove(aside.part)
    }
}
