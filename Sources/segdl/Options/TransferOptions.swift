import ArgumentParser
import SegmentedDownload

/// The options for fetching and resuming files.
struct TransferOptions: FileOptionGroup {
    @Option(file: "segments") var segments: FileEdit?
    @Option(file: "range") var range: FileEdit?
    @Option(file: "min-split-size") var minSplitSize: FileEdit?

    @Flag(
        inversion: .prefixedNo,
        help:
            "Store the best number of connections to a server in ~/.cache/segdl/servers.json, and start with it for a day."
    )
    var remember = true

    @Flag(
        help: "Use the mirrors in a server's Link fields if the server or --checksum gives a SHA-256 or SHA-512."
    )
    var linkedMirrors = false

    @Option(file: "on-change") var onChange: FileEdit?
    @Option(file: "checksum") var checksum: [FileEdit] = []

    @Option(
        help: ArgumentHelp(
            "Verify files against a list of checksums, such as SHA256SUMS or file.iso.sha256. Repeatable.",
            valueName: "URL|FILE"), completion: .file(), transform: HomePath.file)
    var checksumFrom: [String] = []

    @Option(file: "retry") var retry: FileEdit?
    @Option(file: "retry-delay") var retryDelay: FileEdit?
    @Option(file: "retry-max-time") var retryMaxTime: FileEdit?

    @Option(help: ArgumentHelp("The maximum time to establish a connection.", valueName: "TIME"))
    var connectTimeout = Seconds(.seconds(15))

    @Option(file: "stall-timeout") var stallTimeout: FileEdit?
    @Option(file: "head-timeout") var headTimeout: FileEdit?
    @Option(file: "speed-limit") var speedLimit: FileEdit?
    @Option(file: "speed-time") var speedTime: FileEdit?
    @Option(file: "max-time") var maxTime: FileEdit?
    @Option(file: "max-filesize") var maxFilesize: FileEdit?
    @Flag(file: "content-coding") var contentCoding: Bool?
    @Flag(file: "remote-time") var remoteTime: Bool?
    @Option(file: "file-allocation") var fileAllocation: FileEdit?
    @Option(file: "fsync") var fsync: FileEdit?

    func apply(to configuration: inout DownloadConfiguration) {
        configuration.connectTimeout = self.connectTimeout.duration
        configuration.memory = self.remember ? .standard : nil
    }
}
