public import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A file that remembers the best number of connections for each server, so that the next download starts with that
/// many.
///
/// A server is identified by scheme, host and port of the requested URL, regardless of redirects. Only downloads with
/// ``DownloadOptions/Segments/automatic`` use it, and only numbers found by measurement are stored. The file is read
/// before the client's first group begins, and written when a group ends. It is a cache: you may delete it at any time,
/// and a damaged file does not fail a download. Loopback addresses are not stored.
public struct ServerMemory: Hashable, Sendable {
    /// The file's path. Any number of processes may share the file. A missing directory is created, accessible to its
    /// owner only.
    public var path: FilePath
    /// How long a number is used before it is measured again. Default 24 hours.
    public var lifetime: Duration = .seconds(24 * 3600)

    /// Whether loopback addresses are stored. Used by tests, whose servers are on loopback.
    var includesLoopback = false

    public init(path: FilePath) {
        self.path = path
    }

    /// `segdl/servers.json` in the user's cache directory; `nil` if the environment has neither `XDG_CACHE_HOME` nor
    /// `HOME`.
    ///
    /// Source: XDG Base Directory Specification, `XDG_CACHE_HOME`.
    public static var standard: ServerMemory? {
        let environment = ProcessInfo.processInfo.environment
        // The specification says to ignore relative paths.
        let directory = [environment["XDG_CACHE_HOME"], environment["HOME"].map { "\($0)/.cache" }]
            .compactMap { $0 }.first { $0.hasPrefix("/") }
        return directory.map { ServerMemory(path: FilePath($0).appending("segdl/servers.json")) }
    }
}
