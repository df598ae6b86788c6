#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Remembers for each server how many connections paid, so that the next download from there begins with as many.
///
/// A server is known by scheme, name and port of the first URL, wherever that redirects to. What is found is written when a group ends.
/// Only for ``DownloadRequest/Segments/automatic``, and only what was found by trying. It is a cache: it may be deleted at any time, and
/// whatever is wrong with it fails no download. Loopback addresses are not remembered, for there is nothing to gain.
public struct ServerMemory: Hashable, Sendable {
    /// A file that any number of processes may share; its directory is made where it is missing, for its owner alone.
    public var path: String
    /// After so long the number is found anew.
    public var lifetime: Duration = .seconds(24 * 3600)

    /// For tests, whose servers are all on loopback.
    var includesLoopback = false

    public init(path: String) {
        self.path = path
    }

    /// `segdl/servers.json` in the user's cache directory; absent where the environment names neither that nor a home.
    ///
    /// Source: XDG Base Directory Specification, `XDG_CACHE_HOME`.
    public static var standard: ServerMemory? {
        let environment = ProcessInfo.processInfo.environment
        // Relative ones are to be ignored, says the specification.
        let directory = [environment["XDG_CACHE_HOME"], environment["HOME"].map { "\($0)/.cache" }]
            .compactMap { $0 }.first { $0.hasPrefix("/") }
        return directory.map { ServerMemory(path: "\($0)/segdl/servers.json") }
    }
}
