import SegmentedDownloadCore

/// What is done to the file of a part besides writing.
extension StorageFile {
    /// Empties the file, then gives it a length.
    ///
    /// - Parameter allocates: Whether space is reserved, if the file system supports it.
    func begin(length: Int64, allocates: Bool) throws(StorageError) {
        try self.truncate(to: 0)
        guard length > 0 else { return }
        if !allocates {
            try self.truncate(to: length)
        } else if try !self.allocate(length) {
            try self.truncate(to: length)
        }
    }

    /// Writes the bytes of a claim again, if they are all there.
    func rewrite(_ claim: Claim) throws(StorageError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(claim.length), alignment: 4096)
        defer { buffer.deallocate() }
        guard try self.readFully(into: buffer, at: claim.offset) == buffer.count else { return }
        try self.writeFully(UnsafeRawBufferPointer(buffer), at: claim.offset)
    }

    /// Removes write permission for group and others. A part is trusted only if no other user can have written it.
    func protect() throws(StorageError) {
        let permissions = try self.status().ownership.permissions
        guard permissions & Ownership.foreignWrite != 0 else { return }
        do throws(StorageError) {
            try self.setPermissions(permissions & ~Ownership.foreignWrite)
        } catch  where error.condition != .readOnly {
            // On FAT and some network file systems permissions depend on the mount. The file can be fetched but not
            // resumed.
        }
    }
    /// Gives a file that has its name the permissions that it is to have, if they are known.
    ///
    /// Only then: a part that others may write to would not be resumed. A failure is not an error: on FAT and some network
    /// file systems permissions depend on the mount.
    func release(_ permissions: UInt32?) {
        guard let permissions, let found = try? self.status().ownership.permissions, found != permissions else {
            return
        }
        try? self.setPermissions(permissions)
    }
}
