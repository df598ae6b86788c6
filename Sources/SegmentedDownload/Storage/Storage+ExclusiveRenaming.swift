import Synchronization

/// Renames to a name that must not exist. Which of three ways a file system allows is decided here only:
///
/// 1. An exclusive rename (``Storage/rename(_:to:replacing:)``). It is always tried, for the price of one call.
/// 2. A hard link, and the removal of the old name, as on NFS. On sshfs, mergerfs and unionfs-fuse the file has another
///    identity under its second name, so that it cannot be told from a file that another program has put there. So two empty
///    files show, once for each mounted file system, whether links keep the identity (``LinkFacts``).
/// 3. A claim: the new name is created empty (`O_CREAT | O_EXCL`), which fails if it exists, and the file is renamed over the
///    empty file. Every file system allows that. Another program could replace the empty file in between; it is checked
///    immediately before the rename.
extension Storage {
    /// Renames a file to a name that must not exist.
    ///
    /// - Parameters:
    ///   - keepsIdentity: Whether the file must have the same identity under its new name.
    ///   - trial: What the names of the two empty files begin with, if several processes may rename the file at once.
    /// - Throws: ``StorageError`` with condition `exists` if the name is taken.
    func renameExclusively(
        _ path: String, to target: String, keepsIdentity: Bool = true, trial: String? = nil
    ) throws(StorageError) {
        do throws(StorageError) {
            try self.rename(path, to: target, replacing: false)
        } catch  where error.condition == .unsupported {
            try self.renameOtherwise(path, to: target, keepsIdentity: keepsIdentity, trial: trial)
        }
    }

    /// The same in the second or the third way.
    func renameOtherwise(
        _ path: String, to target: String, keepsIdentity: Bool = true, trial: String? = nil
    ) throws(StorageError) {
        if let device = try self.status(of: path)?.device,
            !keepsIdentity || self.linksKeepIdentity(on: device, beside: trial ?? path),
            try self.renameByLink(path, to: target, on: device)
        {
            return
        }
        try self.rename(path, claiming: target)
    }

    /// The same in the second way, if links are known to keep the identity.
    ///
    /// - Returns: Whether the file was renamed.
    func renameByKnownLink(_ path: String, to target: String) throws(StorageError) -> Bool {
        guard let device = try self.status(of: path)?.device, self.linkFacts[device] == true else { return false }
        return try self.renameByLink(path, to: target, on: device)
    }

    /// - Returns: Whether the file was renamed; `false` if there can be no link.
    private func renameByLink(_ path: String, to target: String, on device: UInt64) throws(StorageError) -> Bool {
        do throws(StorageError) {
            try self.link(path, to: target)
        } catch  where error.condition != .exists && error.condition != .notFound {
            // What is mounted may join several file systems, or be another file system than before.
            self.linkFacts[device] = nil
            return false
        }
        try self.remove(path)
        return true
    }

    private func rename(_ path: String, claiming target: String) throws(StorageError) {
        let claim = try self.open(target, .create)
        defer { claim.close() }
        let own = try claim.status()
        do throws(StorageError) {
            guard try self.isEmpty(target, sameAs: own) else {
                throw StorageError(
                    call: "rename", path: target, errno: 0, condition: .exists,
                    text: "another program has taken the name")
            }
            // A file that is open while another one is renamed over it stays under a hidden name on many FUSE file systems.
            claim.close()
            try self.rename(path, to: target, replacing: true)
        } catch {
            if (try? self.isEmpty(target, sameAs: own)) == true { try? self.remove(target) }
            throw error
        }
    }

    private func isEmpty(_ path: String, sameAs own: StorageStatus) throws(StorageError) -> Bool {
        guard let named = try self.status(of: path) else { return false }
        return named.kind == .file && named.isSameFile(as: own) && named.length == 0
    }

    // MARK: Whether links keep the identity

    private func linksKeepIdentity(on device: UInt64, beside path: String) -> Bool {
        if let known = self.linkFacts[device] { return known }
        let found = self.tryLink(beside: path)
        self.linkFacts[device] = found
        return found ?? false
    }

    /// Whether a link to an empty file has the file's identity; `nil` if that could not be tried.
    private func tryLink(beside path: String) -> Bool? {
        let trials = LinkFacts.trials(beside: path)
        guard let file = try? self.open(trials[0], .createPrivate) else { return nil }
        defer {
            file.close()
            try? self.remove(trials[0])
        }
        do throws(StorageError) {
            try self.link(trials[0], to: trials[1])
            defer { try? self.remove(trials[1]) }
            guard try self.status(of: trials[1])?.isSameFile(as: file.status()) == true else { return false }
            try self.remove(trials[0])
            return try self.status(of: trials[1])?.isSameFile(as: file.status()) == true
        } catch {
            return error.condition == .noSpace ? nil : false
        }
    }
}

/// Whether a file keeps its identity (``FileIdentity``) under a second name, for each mounted file system.
package final class LinkFacts: Sendable {
    /// By device number. There are as many as file systems are mounted.
    private let facts = Mutex<[UInt64: Bool]>([:])

    package init() {}

    subscript(device: UInt64) -> Bool? {
        get { self.facts.withLock { $0[device] } }
        set { self.facts.withLock { $0[device] = newValue } }
    }

    /// The names of the two empty files. Only one process at a time may use them, such as the one that has locked the part.
    static func trials(beside path: String) -> [String] { [path + ".try1", path + ".try2"] }
}
