import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

extension Storage {
    /// Renames an open file, as ``rename(_:to:replacing:)`` does with its path.
    ///
    /// If the answer of an NFS server is lost, for example because the server is restarted, the client sends the request again.
    /// The server may have carried it out already, and then answers that the new name exists or that the old one does not. So
    /// the new name is examined after such an error: if it is this file's, the rename has succeeded.
    func rename(
        _ file: any StorageFile, from path: String, to target: String, replacing: Bool
    ) throws(StorageError) {
        do throws(StorageError) {
            try self.rename(path, to: target, replacing: replacing)
        } catch  where error.condition == .exists || error.condition == .notFound {
            guard let own = try? file.status(), self.names(target, own) else { throw error }
            // After a link the file has both names.
            if path != target, self.names(path, own) { try self.remove(path) }
        }
    }

    /// Throws if a path names a device, a FIFO or a socket, which a rename would replace as it does a file.
    func checkReplaceable(_ path: String) throws(StorageError) {
        guard try self.status(of: path)?.kind == .other else { return }
        throw StorageError(
            call: "rename", path: path, errno: EEXIST, condition: .exists, text: "it is not a regular file")
    }

    /// Whether a path is known to name a file.
    private func names(_ path: String, _ own: StorageStatus) -> Bool {
        (try? self.status(of: path))?.map { $0.kind == .file && $0.isSameFile(as: own) } ?? false
    }
}
