import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Standard input, output and error.
enum StandardDescriptors {
    /// Raised if segdl was started with standard output closed. Output is then lost.
    static let isOutputClosed = Latch()

    /// Opens the null device for closed standard descriptors.
    ///
    /// Otherwise the next open file would get their numbers, and progress would be written into a download.
    static func open() {
        if fcntl(STDOUT_FILENO, F_GETFD) == -1 { Self.isOutputClosed.raise() }
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest free number is this one.
            _ = SystemCalls.openFile("/dev/null", O_RDWR)
        }
        Self.raiseLimit()
    }

    /// 256: enough for sixteen files and 64 connections. A lower soft limit is raised to this, up to the hard limit.
    private static let limitLeast: rlim_t = 256

    private static func raiseLimit() {
        var limit = rlimit()
        #if canImport(Musl)
            let resource = RLIMIT_NOFILE
        #else
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #endif
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < Self.limitLeast, limit.rlim_cur < limit.rlim_max else {
            return
        }
        limit.rlim_cur = min(limit.rlim_max, Self.limitLeast)
        _ = setrlimit(resource, &limit)
    }
}
