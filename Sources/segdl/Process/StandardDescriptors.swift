import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Standard input, output and error.
enum StandardDescriptors {
    /// Raised for those of the standard descriptors with which segdl was started closed. What is written to them is lost.
    private static let closed = [Latch(), Latch(), Latch()]

    /// Whether segdl was started with standard output closed.
    static var isOutputClosed: Bool { Self.closed[Int(STDOUT_FILENO)].isRaised }

    /// Whether segdl was started with a descriptor. Those that segdl opens itself are closed in other programs.
    static func isInherited(_ descriptor: CInt) -> Bool {
        let flags = fcntl(descriptor, F_GETFD)
        guard flags != -1, flags & FD_CLOEXEC == 0 else { return false }
        return !Self.closed.indices.contains(Int(descriptor)) || !Self.closed[Int(descriptor)].isRaised
    }

    /// Opens the null device for closed standard descriptors.
    ///
    /// Otherwise the next open file would get their numbers, and progress would be written into a download.
    static func open() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            Self.closed[Int(descriptor)].raise()
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
