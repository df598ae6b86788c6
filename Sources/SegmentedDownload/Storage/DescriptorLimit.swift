#if canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// How many connections the process has file descriptors for.
///
/// A connection that finds none left only waits for its turn; a file that finds none left to be put into place with has failed.
enum DescriptorLimit {
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
