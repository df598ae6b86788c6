import Synchronization

/// The directories without manifests, in which the survey of a short file leaves out three of five names.
///
/// A manifest, its draft and the manifest of a part that was set aside seldom exist without a file or a part. Once a
/// listing has shown none in a directory, only the file and the part are looked for. A manifest that another process leaves
/// there later is not read, and stays beside the complete file. A download whose part begins on disk is surveyed
/// completely.
///
/// It is not checked either whether such a directory is writable: creating a file shows it.
package final class KnownDirectories: Sendable {
    private struct Directory {
        var files = 0
        var listsAt = KnownDirectories.filesMin
        var isClear = false
    }

    /// A directory is listed for the first time when it has got this many files, and if that does not help, again each
    /// time the number has quadrupled.
    static let filesMin = 16

    /// A listing is given up after this many names for each file so far, so that a long directory costs little.
    static let namesPerFile = 16

    /// If files go to more directories than this, all are forgotten.
    static let directoriesMax = 64

    private let directories = Mutex<[String: Directory]>([:])

    package init() {}

    /// Whether a directory is known to have no manifests.
    func isClear(_ directory: String) -> Bool {
        self.directories.withLock { $0[directory]?.isClear ?? false }
    }

    /// Forgets a directory, because the manifest of a part that was set aside is there now.
    func forget(_ directory: String) {
        self.directories.withLock { $0[directory] = nil }
    }

    /// Records that none of the five names of a file was found, and lists its directory if that is worth it now.
    func noteClear(_ paths: DestinationPaths, in storage: any Storage) {
        let namesMax = self.directories.withLock { directories -> Int? in
            if directories.count >= Self.directoriesMax, directories[paths.directory] == nil { directories = [:] }
            var directory = directories[paths.directory] ?? Directory()
            defer { directories[paths.directory] = directory }
            directory.files += 1
            guard !directory.isClear, directory.files >= directory.listsAt else { return nil }
            directory.listsAt *= 4
            return directory.files * Self.namesPerFile
        }
        // A directory that cannot be listed stays unknown.
        guard let namesMax, let names = try? storage.names(in: paths.directory, max: namesMax),
            !names.contains(where: { DestinationPaths.isOfManifest($0) })
        else { return }
        self.directories.withLock { $0[paths.directory]?.isClear = true }
    }
}

extension DestinationPaths {
    /// Whether a name is that of a manifest or its draft, also of a part that was set aside.
    fileprivate static func isOfManifest(_ name: String) -> Bool {
        name.utf8.hasSuffix(Self.manifestSuffix) || name.utf8.hasSuffix(Self.draftSuffix)
    }
}

extension String.UTF8View {
    /// Compared by bytes, as the system does.
    fileprivate func hasSuffix(_ suffix: String) -> Bool { self.reversed().starts(with: suffix.utf8.reversed()) }
}
