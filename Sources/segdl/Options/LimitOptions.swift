import ArgumentParser
import SegmentedDownload

/// What the files may use, together and each.
struct LimitOptions: ParsableArguments {
    @Option(
        name: [.customShort("j", allowingJoined: true), .long, .customLong("parallel-max")],
        help: ArgumentHelp("Files at once.", valueName: "N"))
    var maxConcurrentDownloads = 5

    @Option(
        name: [.customShort("x", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Connections to one server, over all files. (default: 16, as many as -s N says, 32 for one file with -s auto)",
            valueName: "N"))
    var maxConnectionPerServer: Int?

    @Option(help: ArgumentHelp("Connections in all. (default: 64, or more if -s says so)", valueName: "N"))
    var maxConnections: Int?

    @Option(
        name: [.long, .customLong("max-overall-download-limit")],
        help: ArgumentHelp("Bytes per second, all files together: 10M, 500k/s; 0 for no limit.", valueName: "RATE"))
    var limitRate: ByteRate?

    @Option(
        name: [.long, .customLong("max-download-limit")],
        help: ArgumentHelp("Bytes per second, each file.", valueName: "RATE"))
    var limitRatePerFile: ByteRate?

    @Option(
        help: ArgumentHelp(
            "Above 0, at most 1: a file's share of connections and bytes beside others is in proportion to it.",
            valueName: "P"))
    var priority = Priority.standard

    mutating func validate() throws {
        for (value, option) in [
            (self.maxConnectionPerServer, "--max-connection-per-server"), (self.maxConnections, "--max-connections"),
            (self.maxConcurrentDownloads, "--max-concurrent-downloads"),
        ] {
            guard let value, !(1...SegmentCount.countMax).contains(value) else { continue }
            throw ValidationError("\(option) is from 1 to \(SegmentCount.countMax), not \(value)")
        }
    }

    func apply(to request: inout DownloadRequest) {
        request.priority = self.priority.value
        request.bytesPerSecond = self.limitRatePerFile?.limit
    }

    /// 32: no more are tried for one file.
    static let connectionsPerHostAlone = 32

    func limits(for requests: [DownloadRequest]) -> DownloadLimits {
        var limits = DownloadLimits()
        // A number of segments is exact: what holds without being asked for gives way to it.
        let segments = requests.reduce(1) { most, request in
            switch request.segments {
            case .automatic: most
            case .exactly(let count): max(most, count)
            }
        }
        // One file alone may have as many as are found to pay.
        let isAlone = requests.count == 1 && requests[0].segments == .automatic
        limits.connectionsPerHost =
            self.maxConnectionPerServer
            ?? max(limits.connectionsPerHost, isAlone ? Self.connectionsPerHostAlone : segments)
        limits.connections = self.maxConnections ?? max(limits.connections, segments)
        limits.downloads = self.maxConcurrentDownloads
        limits.bytesPerSecond = self.limitRate?.limit
        return limits
    }
}
