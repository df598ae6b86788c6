import ArgumentParser
import SegmentedDownload

/// The limits of the run and of each file.
struct LimitOptions: FileOptionGroup {
    @Option(
        name: [.customShort("j", allowingJoined: true), .long, .customLong("parallel-max")],
        help: ArgumentHelp(
            "Fetch at most N files at once. (default: 5, or 16 if they are short; in jobs and the service 5)",
            valueName: "N"))
    var maxConcurrentDownloads: Int?

    @Option(
        name: [.customShort("x", allowingJoined: true), .long],
        help: ArgumentHelp(
            "At most N connections to one server. (default: 16, or -s N if larger; 32 for one file with -s auto)",
            valueName: "N"))
    var maxConnectionPerServer: Int?

    @Option(help: ArgumentHelp("At most N connections in all. (default: 64, or -s N if larger)", valueName: "N"))
    var maxConnections: Int?

    @Option(
        name: [.long, .customLong("max-overall-download-limit")],
        help: ArgumentHelp("Bytes per second for all files together, such as 10M; 0 for no limit.", valueName: "RATE"))
    var limitRate: ByteRate?

    @Option(file: "limit-rate-per-file") var limitRatePerFile: FileEdit?
    @Option(file: "priority") var priority: FileEdit?

    mutating func validate() throws {
        for (value, option) in [
            (self.maxConnectionPerServer, "--max-connection-per-server"), (self.maxConnections, "--max-connections"),
            (self.maxConcurrentDownloads, "--max-concurrent-downloads"),
        ] {
            guard let value, !(1...SegmentCount.countMax).contains(value) else { continue }
            throw ValidationError("\(option) must be from 1 to \(SegmentCount.countMax), not \(value)")
        }
    }

    /// 32: the automatic search for the number of connections ends there.
    static let connectionsPerHostAlone = 32

    func limits(for requests: [DownloadRequest]) -> DownloadLimits {
        var limits = DownloadLimits()
        // -s N is exact, so it raises the default limits.
        let segments = requests.reduce(1) { most, request in
            switch request.segments {
            case .automatic: most
            case .exactly(let count): max(most, count)
            }
        }
        // For a single file the limit must not end the search early.
        let isAlone = requests.count == 1 && requests[0].segments == .automatic
        limits.connectionsPerHost =
            self.maxConnectionPerServer
            ?? max(limits.connectionsPerHost, isAlone ? Self.connectionsPerHostAlone : segments)
        limits.connections = self.maxConnections ?? max(limits.connections, segments)
        if let maxConcurrentDownloads { limits.downloads = maxConcurrentDownloads }
        limits.bytesPerSecond = self.limitRate?.limit
        return limits
    }
}
