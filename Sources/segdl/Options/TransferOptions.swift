import ArgumentParser
import SegmentedDownload

/// How files are fetched, for the first time or when they are resumed.
struct TransferOptions: FileOptionGroup {
    @Option(file: "segments") var segments: FileEdit?
    @Option(file: "min-split-size") var minSplitSize: FileEdit?

    @Flag(
        inversion: .prefixedNo,
        help:
            "Store in ~/.cache/segdl/servers.json how many connections to a server were best, and begin with them for a day."
    )
    var remember = true

    @Flag(
        help:
            "Use the mirrors in a server's Link fields if it states the file's SHA-256 or SHA-512, or --checksum does.")
    var linkedMirrors = false

    @Option(file: "on-change") var onChange: FileEdit?
    @Option(file: "checksum") var checksum: [FileEdit] = []

    @Option(
        help: ArgumentHelp(
            "A list of digests, such as SHA256SUMS or file.iso.sha256. Repeatable.", valueName: "URL|FILE"))
    var checksumFrom: [String] = []

    @Option(file: "retry") var retry: FileEdit?
    @Option(file: "retry-delay") var retryDelay: FileEdit?
    @Option(file: "retry-max-time") var retryMaxTime: FileEdit?

    @Option(help: ArgumentHelp("The time that establishing a connection may take.", valueName: "TIME"))
    var connectTimeout = Seconds(.seconds(15))

    @Option(file: "stall-timeout") var stallTimeout: FileEdit?
    @Option(file: "max-time") var maxTime: FileEdit?
    @Option(file: "max-filesize") var maxFilesize: FileEdit?
    @Flag(file: "remote-time") var remoteTime: Bool?
    @Option(file: "file-allocation") var fileAllocation: FileEdit?
    @Option(file: "fsync") var fsync: FileEdit?

    func apply(to configuration: inout DownloadConfiguration) {
        configuration.connectTimeout = self.connectTimeout.duration
        configuration.memory = self.remember ? .standard : nil
    }
}
