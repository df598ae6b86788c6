import SegmentedDownloadCore

extension DownloadClient {
    /// Runs `body` with a group that has its own directory, history and limits.
    ///
    /// The group's name is the name of its directory. Relative destinations are resolved against it,
    /// ``DownloadGroup/restore(from:_:_:)`` searches it, and ``DownloadGroup/diskUsage()`` and
    /// ``DownloadGroup/removeAll()`` apply to it.
    ///
    /// - Parameters:
    ///   - name: A file name without a slash and without a leading dot.
    ///   - base: The parent of the group's directory. The directory is created if it is missing.
    ///   - limits: The group's limits; `nil` for those of the client's configuration.
    ///   - history: The group's history policy; `nil` for a file `.segdl-history` in the directory.
    /// - Throws: ``DownloadError`` with code `usage` if the name is invalid, `file` if the directory cannot be created,
    ///   and any error that `body` throws. The two may be of different types, so the type is not stated.
    public func withGroup<Answer: Sendable>(
        named name: String, in base: String = ".", limits: DownloadLimits? = nil, history: HistoryPolicy? = nil,
        _ body: (DownloadGroup) async throws -> Answer
    ) async throws -> Answer {
        guard let safe = SafeFilename(untrusted: name), safe.value == name else {
            throw DownloadError(
                .usage, "\"\(name.printable)\" is not a valid group name",
                hint: "Use a file name without slashes that does not begin with a dot")
        }
        let directory = DestinationPaths(directory: base, name: name).destination
        // Hidden: a file name that a server suggests never begins with a dot.
        let history = history ?? HistoryPolicy(path: directory + "/.segdl-history")
        try self.makeDirectory(directory)
        return try await self.withGroup(
            name: name, directory: directory, limits: limits, history: history, body)
    }
}

extension DownloadGroup {
    /// The group of the enclosing ``DownloadClient/withSharedGroup(_:)``; `nil` outside of one.
    ///
    /// It replaces a singleton. The group lives as long as the scope, so nothing keeps running, and each test or
    /// request may have its own. Child tasks inherit it; detached tasks do not.
    @TaskLocal public static var shared: DownloadGroup?
}

extension DownloadClient {
    /// Runs `body` with a group that the functions it calls can access as ``DownloadGroup/shared``.
    ///
    /// - Throws: Any error that `body` throws.
    public func withSharedGroup<Answer: Sendable>(
        _ body: (DownloadGroup) async throws -> Answer
    ) async throws -> Answer {
        try await self.withGroup { group in
            try await DownloadGroup.$shared.withValue(group) { try await body(group) }
        }
    }
}
