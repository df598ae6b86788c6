import SegmentedDownload

/// Directories. They are durable as soon as they are made. One that is removed is back after a power cut if the removal of a
/// file in it was not durable.
extension SimulatedDisk {
    /// What a path names.
    enum Entry {
        case file(Inode)
        case directory(inode: UInt64)
    }

    /// 255: `NAME_MAX` of Linux file systems, in bytes.
    private static let nameLengthMax = 255

    /// The number of the working directory.
    private static let rootInode: UInt64 = 2

    /// What a path names; `nil` if nothing exists.
    ///
    /// - Parameter call: The call that an error names.
    func entry(at path: String, _ call: String) throws(StorageError) -> Entry? {
        guard path.utf8.split(separator: UInt8(ascii: "/")).allSatisfy({ $0.count <= Self.nameLengthMax }) else {
            throw SystemError.nameTooLong.of(call, path)
        }
        if let inode = self.names[path] { return .file(inode) }
        if let number = self.directoryNumber(path) { return .directory(inode: number) }
        var directory = DestinationPaths(path: path).directory
        while self.directoryNumber(directory) == nil {
            guard self.names[directory] == nil else { throw SystemError.notDirectory.of(call, path) }
            directory = DestinationPaths(path: directory).directory
        }
        return nil
    }

    /// Throws if a file cannot get a path because its directory does not exist.
    func checkDirectory(of path: String, _ call: String) throws(StorageError) {
        guard self.directoryNumber(DestinationPaths(path: path).directory) == nil else { return }
        throw SystemError.notFound.of(call, path)
    }

    /// The number of a directory; `nil` if it does not exist.
    private func directoryNumber(_ path: String) -> UInt64? {
        path == "." || path == "/" ? Self.rootInode : self.directories[path]
    }

    func makeDirectory(_ path: String, isPrivate: Bool) {
        // Behind the numbers of all files, which stay as they are in worlds without directories.
        let number = (self.directories.values.max() ?? UInt64.max / 2 - 1) + 1
        self.directories[path] = number
        if isPrivate { self.privateDirectories.insert(number) }
    }

    /// Removes a directory if it is empty.
    func removeDirectory(_ path: String) {
        if self.names(in: path).count == 2 { self.directories[path] = nil }
    }

    /// Creates the directories that the files' names need.
    func restoreDirectories() {
        for name in self.names.keys.sorted() {
            let directory = DestinationPaths(path: name).directory
            if self.directoryNumber(directory) == nil { self.makeDirectory(directory, isPrivate: false) }
        }
    }

    /// The names in a directory, itself and its parent included, sorted.
    func names(in directory: String) -> [String] {
        let paths = Array(self.names.keys) + Array(self.directories.keys)
        let names = paths.map { DestinationPaths(path: $0) }.filter { $0.directory == directory }.map(\.name)
        return ([".", ".."] + names).sorted()
    }
}
