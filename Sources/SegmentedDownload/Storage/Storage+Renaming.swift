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
        } catch {
            guard try self.isRenamed(file, from: path, to: target, in: error) else { throw error }
        }
    }

    /// Gives an open file the name that others look for, unless they have used it first. Under its new name the file may have
    /// another identity.
    func publish(_ file: any StorageFile, from path: String, to target: String) throws(StorageError) {
        do throws(StorageError) {
            try self.renameExclusively(path, to: target, keepsIdentity: false)
        } catch {
            guard try self.isRenamed(file, from: path, to: target, in: error) else { throw error }
        }
    }

    /// Whether an open file was renamed although a rename or a link ended with this error.
    func isRenamed(
        _ file: any StorageFile, from path: String, to target: String, in error: StorageError
    ) throws(StorageError) -> Bool {
        guard error.condition == .exists || error.condition == .notFound, let own = try? file.status(),
            self.names(target, own)
        else { return false }
        // After a link the file has both names.
        if path != target, self.names(path, own) { try self.remove(path) }
        return true
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
