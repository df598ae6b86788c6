import SegmentedDownloadCore
public import SystemPackage

extension DownloadClient {
    /// Runs `body` with a group that has its own directory, history and limits.
    ///
    /// The group's name is the name of its directory. Relative destinations are resolved against it,
    /// ``DownloadGroup/restore(from:_:_:)`` searches it, and ``DownloadGroup/diskUsage()`` and
    /// ``DownloadGroup/deleteFiles()`` apply to it.
    ///
    /// - Parameters:
    ///   - name: A file name without a slash and without a leading dot.
    ///   - base: The parent of the group's directory. The directory is created if it is missing.
    ///   - limits: The group's limits; `nil` for those of the client's configuration.
    ///   - history: The group's history policy; `nil` for a file `.segdl-history` in the directory.
    /// - Throws: ``DownloadError`` with code `usage` if the name or a path is invalid, `file` if the directory cannot
    ///   be created, and any error that `body` throws. The two may be of different types, so the type is not stated.
    public func withGroup<Answer: Sendable>(
        named name: String, in base: FilePath = ".", limits: DownloadLimits? = nil, history: HistoryPolicy? = nil,
        _ body: (DownloadGroup) async throws -> Answer
    ) async throws -> Answer {
        guard let safe = SafeFilename(untrusted: name), safe.value == name else {
            throw DownloadError(
                .usage, "\"\(name.printable)\" is not a valid group name",
                hint: "Use a file name without slashes that does not begin with a dot")
        }
        let directory = DestinationPaths(directory: try base.text, name: name).destination
        // Hidden: a file name that a server suggests never begins with a dot.
        let history = history ?? HistoryPolicy(path: FilePath(directory).appending(".segdl-history"))
        _ = try history.path?.text
        try await self.makeDirectory(directory)
        return try await self.withGroup(
            name: name, directory: FilePath(directory), limits: limits, history: history, body)
    }
}
