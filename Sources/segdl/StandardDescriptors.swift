#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Standard input, output and error.
enum StandardDescriptors {
    /// Opens the null device for those that the caller closed.
    ///
    /// The next file opened would take their numbers, and progress would be written into a download.
    static func open() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest free number is this one.
            _ = SystemCalls.openFile("/dev/null", O_RDWR)
        }
    }
}
