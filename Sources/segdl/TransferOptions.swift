import ArgumentParser
import SegmentedDownload

/// How files are fetched, whether for the first time or to go on with them.
struct TransferOptions: ParsableArguments {
    @Option(
        name: [.customShort("s", allowingJoined: true), .long, .customLong("split")],
        help: ArgumentHelp("Connections for one file: exactly so many, or as many as pay.", valueName: "N|auto"))
    var segments = SegmentCount(.automatic)

    @Option(
        name: [.customShort("x", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Connections to one server, over all files. (default: 16, or more if -s says so)", valueName: "N"))
    var maxConnectionPerServer: Int?

    @Option(help: ArgumentHelp("Connections in all. (default: 64, or more if -s says so)", valueName: "N"))
    var maxConnections: Int?

    @Option(
        name: [.customShort("j", allowingJoined: true), .long, .customLong("parallel-max")],
        help: ArgumentHelp("Files at once.", valueName: "N"))
    var maxConcurrentDownloads = 5

    @Option(help: ArgumentHelp("No segment is cut smaller.", valueName: "SIZE"))
    var minSplitSize = ByteCount(1 << 20)

    @Option(help: ArgumentHelp("What to do when the remote file is another one than before.", valueName: "HOW"))
    var onChange = DownloadRequest.ChangePolicy.fail

    @Option(
        help: ArgumentHelp(
            "A digest the file must have: crc32, md5, sha1, sha256 or sha512. Repeatable.", valueName: "ALGO=HEX"))
    var checksum: [ExpectedDigest] = []

    @Option(
        name: [.long, .customLong("tries")],
        help: ArgumentHelp(
            "Failures in a row without a byte of progress before giving up. (default: 10)", valueName: "N"))
    var retry: Int?

    @Option(help: ArgumentHelp("How long a connection may take to be made.", valueName: "TIME"))
    var connectTimeout = Seconds(.seconds(15))

    @Option(help: ArgumentHelp("A connection silent for so long is replaced.", valueName: "TIME"))
    var stallTimeout = Seconds(.seconds(30))

    @Option(help: ArgumentHelp("The longest file accepted.", valueName: "SIZE"))
    var maxFilesize: ByteCount?

    @Option(
        help: ArgumentHelp("How space is reserved: auto and falloc do it, trunc and none do not.", valueName: "HOW"))
    var fileAllocation = FileAllocation.auto

    enum FileAllocation: String, Hashable, CaseIterable, ExpressibleByArgument {
        case auto, falloc, trunc, none
    }

    mutating func validate() throws {
        try Self.require(self.maxConnectionPerServer, in: 1...SegmentCount.countMax, of: "--max-connection-per-server")
        try Self.require(self.maxConnections, in: 1...SegmentCount.countMax, of: "--max-connections")
        try Self.require(self.maxConcurrentDownloads, in: 1...SegmentCount.countMax, of: "--max-concurrent-downloads")
        try Self.require(self.retry, in: 0...Int(Int32.max), of: "--retry")
        if self.minSplitSize.bytes < 1 { throw ValidationError("--min-split-size is at least 1") }
        if self.maxFilesize?.bytes == 0 { throw ValidationError("--max-filesize is at least 1") }
    }

    private static func require(_ value: Int?, in range: ClosedRange<Int>, of option: String) throws {
        guard let value, !range.contains(value) else { return }
        throw ValidationError("\(option) is from \(range.lowerBound) to \(range.upperBound), not \(value)")
    }

    func apply(to request: inout DownloadRequest) {
        request.segments = self.segments.segments
        request.splitLengthMinimum = self.minSplitSize.bytes
        request.onChange = self.onChange
        request.digests += self.checksum.filter { !request.digests.contains($0) }
        request.retries = self.retry
        request.stallTimeout = self.stallTimeout.duration
        request.lengthMaximum = self.maxFilesize?.bytes ?? .max
        switch self.fileAllocation {
        case .auto, .falloc: request.allocates = true
        case .trunc, .none: request.allocates = false
        }
    }

    func apply(to configuration: inout DownloadConfiguration) {
        // A number of segments is exact: what holds without being asked for gives way to it.
        let segments = self.segments.exact ?? 1
        configuration.limits.connectionsPerHost =
            self.maxConnectionPerServer ?? max(configuration.limits.connectionsPerHost, segments)
        configuration.limits.connections = self.maxConnections ?? max(configuration.limits.connections, segments)
        configuration.limits.downloads = self.maxConcurrentDownloads
        configuration.connectTimeout = self.connectTimeout.duration
    }
}
