#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The files of this user's service (XDG Base Directory Specification).
struct ServicePaths: Hashable, Sendable {
    /// The directory of the socket and the lock file, which ends with the session or the boot.
    let runtime: String
    /// The directory of the database and the log file, which stays.
    let state: String

    var socket: String { self.runtime + "/socket" }
    var lock: String { self.runtime + "/lock" }
    var database: String { self.state + "/queue.sqlite" }
    var log: String { self.state + "/daemon.log" }
    var secret: String { self.state + "/rpc-secret" }

    /// - Parameter environment: `XDG_RUNTIME_DIR`, `XDG_STATE_HOME` and `HOME` count; relative values are ignored.
    /// - Throws: ``ServiceFailure`` if no directory is known.
    init(environment: [String: String]) throws(ServiceFailure) {
        func directory(_ name: String) -> String? {
            environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        let home = directory("HOME").map { $0 + "/.local/state" }
        guard let state = directory("XDG_STATE_HOME") ?? home else {
            throw ServiceFailure("there is no place for the service's state", hint: "Set HOME or XDG_STATE_HOME")
        }
        self.state = state + "/segdl"
        let usual = "/run/user/\(geteuid())"
        if let runtime = directory("XDG_RUNTIME_DIR") {
            self.runtime = runtime + "/segdl"
        } else if Self.isOwned(usual) {
            self.runtime = usual + "/segdl"
        } else {
            self.runtime = self.state
        }
    }

    private static func isOwned(_ path: String) -> Bool {
        FileFacts(path).map { $0.isDirectory && $0.owner == geteuid() } ?? false
    }

    /// Creates the directories that are missing, for this user only.
    ///
    /// - Throws: ``ServiceFailure`` if one cannot be created, or another user may write to it or read it.
    func prepare() throws(ServiceFailure) {
        for directory in [self.runtime, self.state] {
            try Self.make(directory[...])
            guard let facts = FileFacts(directory) else {
                throw ServiceFailure("cannot examine", directory, errno: errno)
            }
            guard facts.isDirectory, facts.owner == geteuid() else {
                throw ServiceFailure("\(directory.shown) is not a directory of this user")
            }
            guard !facts.isOpenToOthers else {
                throw ServiceFailure(
                    "\(directory.shown) is open to other users", hint: "Run chmod 700 \(directory.shellWord)")
            }
        }
    }

    private static func make(_ path: Substring) throws(ServiceFailure) {
        guard mkdir(String(path), 0o700) != 0, errno != EEXIST else { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            throw ServiceFailure("cannot create", String(path), errno: errno)
        }
        try Self.make(path[..<slash])
        guard mkdir(String(path), 0o700) == 0 || errno == EEXIST else {
            throw ServiceFailure("cannot create", String(path), errno: errno)
        }
    }
}
