import SegmentedDownload

/// Why the background service cannot be started or used. The exit status is 15.
struct ServiceFailure: Error, Hashable, CustomStringConvertible {
    let message: String
    var hint: String?

    init(_ message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
    }

    /// A failed system call.
    init(_ call: String, _ path: String, errno number: CInt) {
        self.init("\(call) \(path.shown): \(String(cString: strerror(number)))")
    }

    var description: String { self.message }

    var line: FailureLine { FailureLine(.daemon, self.message, hint: self.hint) }
}

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif
