import CLinux
package import SegmentedDownloadCore

#if canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// How many connections the process has file descriptors for.
///
/// A connection that finds none left only waits for its turn; a file that finds none left to be put into place with has failed.
package enum DescriptorLimit {
    /// What a client, its threads, a name being resolved and the program around it hold, and what is opened for a moment.
    private static let reserve = 24

    /// A part, its manifest, and a directory being synced.
    private static let perFile = 3

    /// As many connections as descriptors suffice for, each file having its own; at least one.
    ///
    /// - Parameter files: how many are fetched at once, at most.
    static func connections(files: Int, descriptors: Int = Self.current) -> Int {
        let free = max(descriptors - Self.reserve, 0)
        // Where there are fewer connections than files may be fetched, there are no more files than that, see below.
        return max(free / (1 + Self.perFile), free - Self.perFile * min(files, free), 1)
    }

    /// As many files as descriptors suffice for beside so many connections; at least one. Those that are only being put into place
    /// have no connection any more, and their descriptors still.
    static func files(beside connections: Int, descriptors: Int = Self.current) -> Int {
        max((max(descriptors - Self.reserve, 0) - connections) / Self.perFile, 1)
    }

    /// 6: an event loop's three, a connection, a part, and its manifest or its directory in turn. No download needs fewer.
    private static let least = 6

    /// Makes sure that there are descriptors for a download. An event loop that gets none ends the process.
    ///
    /// - Parameter others: how many the caller is about to open besides.
    /// - Throws: ``Failure`` with code `file`.
    package static func check(others: Int = 0) throws(Failure) {
        let limit = Self.current
        guard limit >= Self.reserve else { throw Self.tooFew(Self.reserve, limit) }
        // The limit may be high, and what the process was begun with take all of it.
        var descriptors: [CInt] = []
        defer { for descriptor in descriptors { close(descriptor) } }
        while descriptors.count < Self.least + others {
            var ends: [CInt] = [-1, -1]
            guard pipe2(&ends, O_CLOEXEC) == 0 else {
                guard errno == EMFILE || errno == ENFILE else { return }
                throw Self.tooFew(Self.least + others, limit, besides: true)
            }
            descriptors += ends
        }
    }

    private static func tooFew(_ count: Int, _ limit: Int, besides: Bool = false) -> Failure {
        Failure(
            .file, "a download needs \(count) \(besides ? "more " : "")open files, and the limit is \(limit)",
            hint: "Raise the limit with ulimit -n \(besides && limit >= 64 ? 2 * limit : 64)", errno: EMFILE)
    }

    /// What `getrlimit(2)` says for `RLIMIT_NOFILE`, which a program may raise up to its hard limit.
    private static var current: Int {
        var limit = rlimit()
        #if canImport(Musl)
            let resource = RLIMIT_NOFILE
        #else
            let resource = CInt(RLIMIT_NOFILE.rawValue)
        #endif
        guard getrlimit(resource, &limit) == 0 else { return .max }
        return Int(clamping: limit.rlim_cur)
    }
}
