import SegmentedDownloadCore

/// Who may write to a file: which files are trusted, and what a finished file gets.
extension Storage {
    /// Throws unless the file belongs to the user and no other user may write to it.
    func checkTrust(_ status: StorageStatus, _ path: String) throws(DownloadError) {
        if let failure = status.ownership.failure(user: self.user, path: path) { throw failure }
    }

    /// Throws unless the finished file belongs to the user and no other user may write to it, except those who may write to
    /// every new file of the user in that place.
    func checkTrust(finished status: StorageStatus, _ path: String) throws(DownloadError) {
        if let failure = self.ownership(ofFinished: status, path).failure(user: self.user, path: path) { throw failure }
    }

    /// A finished file's ownership, without the write permissions that every new file of the user in that place has.
    func ownership(ofFinished status: StorageStatus, _ path: String) -> Ownership {
        guard status.ownership.permissions & Ownership.foreignWrite != 0 else { return status.ownership }
        return status.ownership.excusing(self.permissionsOfNewFile(at: path) ?? 0)
    }

    /// The permissions that a part is to have once it is in place: those that `open` would have given the file, which are
    /// those of the file that is replaced, or of a new one.
    ///
    /// A part has less, see ``StorageFile/protect()``. `nil` if its permissions are not what it has left of those of a new
    /// file; then they were chosen for it, and stay.
    ///
    /// - Parameter replaces: Whether a file of this path is replaced.
    func permissions(
        ofPart file: any StorageFile, at path: String, replaces: Bool
    ) throws(StorageError) -> UInt32? {
        guard let new = self.permissionsOfNewFile(at: path),
            try file.status().ownership.permissions == new & ~Ownership.foreignWrite
        else { return nil }
        guard replaces, let old = try self.status(of: path), old.kind == .file, old.ownership.owner == self.user else {
            return new
        }
        // Without set-user-ID and set-group-ID, because the content is another one; and with no more writers than a new
        // file has, because otherwise the next run would not trust it.
        return old.ownership.permissions & 0o777 & ~(Ownership.foreignWrite & ~new)
    }
}
