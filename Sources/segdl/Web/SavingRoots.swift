import SegmentedDownload
import SegmentedDownloadCore

/// The directories in which clients that connect over TCP may save files.
struct SavingRoots: Hashable, Sendable {
    /// Absolute and without `.` and `..`.
    let directories: [FilePath]

    /// Keeps the file of a request in one of the directories, when its destination is chosen and whenever its directory is
    /// opened later. A name that is no safe file name is changed as names from servers are.
    ///
    /// - Throws: ``DownloadError`` with code `policy` if the destination is elsewhere, or a symbolic link leads elsewhere.
    func confine(_ request: inout DownloadRequest) throws(DownloadError) {
        let root: FilePath
        switch request.destination {
        case .file(let path):
            guard let last = path.lastComponent, let name = SafeFilename(untrusted: last.string) else {
                throw DownloadError(.policy, "the file's name is not allowed")
            }
            let directory = path.removingLastComponent().lexicallyNormalized()
            root = try self.root(of: directory)
            request.destination = .file(directory.appending(name.value))
        case .directory(let path, let template):
            let directory = path.lexicallyNormalized()
            root = try self.root(of: directory)
            request.destination = .directory(directory, name: template)
        case .descriptor, .stream: throw DownloadError(.usage, "a download of the service needs a file")
        }
        request.rootDirectory = root.string
    }

    private func root(of directory: FilePath) throws(DownloadError) -> FilePath {
        for root in self.directories where directory.starts(with: root) {
            for component in directory.components.dropFirst(root.components.count) {
                guard let safe = SafeFilename(untrusted: component.string), safe.value == component.string else {
                    throw DownloadError(
                        .policy, "the directory \(component.string.shown) is not allowed",
                        hint: "Choose a name without hidden or special characters")
                }
            }
            try Self.check(directory, in: root)
            return root
        }
        throw DownloadError(
            .policy, "\(directory.string.shown) is outside of the directories in which clients may save files",
            hint: "Allow more with segdl daemon --rpc-root DIR")
    }

    private static func check(_ directory: FilePath, in root: FilePath) throws(DownloadError) {
        let found: StorageStatus?
        do throws(StorageError) {
            found = directory == root ? nil : try POSIXStorage().confined(to: root.string).status(of: directory.string)
        } catch {
            throw error.failure
        }
        // What does not exist yet leads nowhere.
        guard found == nil || found?.kind == .directory else {
            throw DownloadError(
                .policy, "\(directory.string.shown) is no directory, or a symbolic link leads elsewhere")
        }
    }
}
