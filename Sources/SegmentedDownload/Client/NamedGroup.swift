import SegmentedDownloadCore

extension DownloadClient {
    /// Hands a group of its own to `body`: what one user, project or purpose fetches, apart from all others.
    ///
    /// Its name is a directory: relative destinations lead there, ``DownloadGroup/restore(from:_:_:)`` looks there, and
    /// ``DownloadGroup/diskUsage()`` and ``DownloadGroup/removeAll()`` are about what is there. Its history is kept there too, and its
    /// limits are its own.
    ///
    /// - Parameters:
    ///   - name: A file name, not hidden and without a slash.
    ///   - base: Where the directory is; it is created if it is missing.
    ///   - limits: Those of the client's configuration if absent.
    ///   - history: A file in the directory if absent.
    /// - Throws: ``DownloadError`` with code `usage` for a name that is none, `file` if the directory cannot be made, and what `body`
    ///   throws.
    public func withGroup<Answer: Sendable>(
        named name: String, in base: String = ".", limits: DownloadLimits? = nil, history: HistoryPolicy? = nil,
        _ body: (DownloadGroup) async throws -> Answer
    ) async throws -> Answer {
        guard let safe = SafeFilename(untrusted: name), safe.value == name else {
            throw DownloadError(
                .usage, "\"\(name.printable)\" is no name for a group",
                hint: "A group's name is a file name that is not hidden")
        }
        let directory = DestinationPaths(directory: base, name: name).destination
        // Hidden: no server can suggest a name that begins with a dot.
        let history = history ?? HistoryPolicy(path: directory + "/.segdl-history")
        return try await self.withGroup(
            name: name, directory: directory, limits: limits, history: history, makesDirectory: true, body)
    }
}

extension DownloadGroup {
    /// The group that ``DownloadClient/withSharedGroup(_:)`` has made for this task and those within it; absent outside.
    ///
    /// In place of a singleton: it begins and ends with a scope, so nothing of it is left running, and each test or request may have its
    /// own. A detached task does not inherit it.
    @TaskLocal public static var shared: DownloadGroup?
}

extension DownloadClient {
    /// Runs `body` with a group that all it calls reach as ``DownloadGroup/shared``, without its being handed on.
    ///
    /// - Throws: What `body` throws.
    public func withSharedGroup<Answer: Sendable>(
        _ body: (DownloadGroup) async throws -> Answer
    ) async throws -> Answer {
        try await self.withGroup { group in
            try await DownloadGroup.$shared.withValue(group) { try await body(group) }
        }
    }
}
