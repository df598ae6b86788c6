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
        try self.rename(paths.part, to: aside.part, replacing: false)
        try self.rename(paths.manifest, to: aside.manifest, replacing: false)
        return true
    }

    /// Deletes what was set aside; leaves files of these names that are not the user's own.
    func removeSetAside(of paths: DestinationPaths) throws(StorageError) {
        let aside = paths.setAside
        guard let part = try self.status(of: aside.part), part.kind == .file,
            part.ownership.objection(user: self.user) == nil
        else { return }
        // The manifest first: without it the part is of no use to anybody.
        try self.removeManifests(aside)
        try self.remove(aside.part)
    }
}
