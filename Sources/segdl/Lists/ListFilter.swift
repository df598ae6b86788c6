#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The files of a list that are fetched: those that match a pattern of `--accept`, if there is one, and none of
/// `--reject`.
struct ListFilter {
    let accept: [String]
    let reject: [String]

    func includes(_ path: String) -> Bool {
        (self.accept.isEmpty || self.accept.contains { Self.matches($0, path) })
            && !self.reject.contains { Self.matches($0, path) }
    }

    /// Whether a pattern of the shell matches. A pattern without a slash is compared with the last component only, and
    /// `*` matches slashes too.
    private static func matches(_ pattern: String, _ path: String) -> Bool {
        fnmatch(pattern, pattern.utf8.contains(UInt8(ascii: "/")) ? path : path.lastPathComponent, 0) == 0
    }
}
