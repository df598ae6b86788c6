import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Standard input, output and error.
enum StandardDescriptors {
    /// Raised where the caller closed standard output: what is written there now is lost.
    static let isOutputClosed = Latch()

    /// Opens the null device for those that the caller closed.
    ///
    /// The next file opened would take their numbers, and progress would be written into a download.
    static func open() {
        if fcntl(STDOUT_FILENO, F_GETFD) == -1 { Self.isOutputClosed.raise() }
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest free number is this one.
            _ = SystemCalls.openFile("/dev/null", O_RDWR)
        }
    }
}
