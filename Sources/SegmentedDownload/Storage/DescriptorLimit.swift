import CLinux
package import SegmentedDownloadCore
import Synchronization

#if canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The number of connections and files that the process has file descriptors for.
///
/// A connection without a descriptor waits for its turn. A finished file without a descriptor for its directory fails.
package enum DescriptorLimit {
    /// 24: descriptors of the client, its threads, name resolution and the surrounding program, and those opened
    /// briefly.
    private static let reserve = 24

    /// A part, its manifest, and a directory being synced.
    private static let perFile = 3

    /// The number of connections that the descriptors allow if each file has its own descriptors; at least 1.
    ///
    /// - Parameter files: The maximum number of files fetched at the same time.
    static func connections(files: Int, descriptors: Int = Self.current - Self.loops.load(ordering: .relaxed)) -> Int {
        let free = max(descriptors - Self.reserve, 0)
        // If there are fewer connections than files, only as many files are fetched; see `files(beside:)`.
        return max(free / (1 + Self.perFile), free - Self.perFile * min(files, free), 1)
    }

    /// The number of files that the descriptors allow beside a number of connections; at least 1. A file that is being
    /// put into place has no connection left but still has descriptors.
    static func files(
        beside connections: Int, descriptors: Int = Self.current - Self.loops.load(ordering: .relaxed)
    ) -> Int {
        max((max(descriptors - Self.reserve, 0) - connections) / Self.perFile, 1)
    }

    /// `epoll`, a timer and an event.
    static let perLoop = 3

    /// The descriptors kept for the event loops of all clients, without the first of each, which ``reserve`` includes.
    private static let loops = Atomic(0)

    /// Keeps descriptors for event loops besides the first one of a client: those of at most a quarter of the limit.
    ///
    /// - Returns: The number of loops. Give them back with ``returnLoops(_:)``.
    static func keepLoops(_ count: Int, descriptors: Int = Self.current) -> Int {
        let kept = Self.loopsAllowed(count, descriptors: descriptors)
        Self.loops.add(kept * Self.perLoop, ordering: .relaxed)
        return kept
    }

    static func loopsAllowed(_ count: Int, descriptors: Int) -> Int {
        min(count, max(descriptors - Self.reserve, 0) / 4 / Self.perLoop)
    }

    static func returnLoops(_ count: Int) { Self.loops.subtract(count * Self.perLoop, ordering: .relaxed) }

    /// Whether one more event loop can open its descriptors now. One that cannot traps.
    static var hasRoomForLoop: Bool { (try? Self.check()) != nil }

    /// 6: an event loop's three, a connection, a part, and its manifest or its directory in turn. No download needs
    /// fewer.
    private static let least = 6

    /// Checks that there are descriptors for a download. An event loop that cannot open its own traps.
    ///
    /// - Parameter others: The number of descriptors that the caller is about to open in addition.
    /// - Throws: ``DownloadError`` with code `file` if there are too few.
    package static func check(others: Int = 0) throws(DownloadError) {
        let limit = Self.current
        guard limit >= Self.reserve else { throw Self.tooFew(Self.reserve, limit) }
        // The limit may be high and the descriptors still be used up by those that the process inherited, so they are
        // tried.
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

    private static func tooFew(_ count: Int, _ limit: Int, besides: Bool = false) -> DownloadError {
        DownloadError(
            .file, "a download needs \(count) \(besides ? "more " : "")open files, and the limit is \(limit)",
            hint: "Raise the limit with ulimit -n \(besides && limit >= 64 ? 2 * limit : 64)", errno: EMFILE)
    }

    /// The soft limit of `RLIMIT_NOFILE` (`getrlimit(2)`).
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
