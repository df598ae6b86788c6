import ArgumentParser
import SegmentedDownload

/// How files are fetched, whether for the first time or to go on with them.
struct TransferOptions: ParsableArguments {
    @Option(
        name: [.customShort("s", allowingJoined: true), .long, .customLong("split")],
        help: ArgumentHelp("Connections for one file: exactly so many, or as many as pay.", valueName: "N|auto"))
    var segments = SegmentCount(.automatic)

    @Option(
        help: ArgumentHelp(
            "No segment is cut smaller. (default: 1M, and what is left at the end as small as pays)", valueName: "SIZE")
    )
    var minSplitSize: ByteCount?

    @Flag(
        inversion: .prefixedNo,
        help:
            "Remember for a day how many connections to a server paid, and begin with them (in ~/.cache/segdl/servers.json)."
    )
    var remember = true

    @Flag(
        help: ArgumentHelp(
            "Use the mirrors that a server names in Link fields, where no others are given and it says the file's SHA-256 or SHA-512, or --checksum does."
        ))
    var linkedMirrors = false

    @Option(help: ArgumentHelp("What to do when the remote file is another one than before.", valueName: "HOW"))
    var onChange = DownloadOptions.ChangePolicy.fail

    @Option(
        help: ArgumentHelp(
            "A digest the file must have: crc32, crc32c, crc64nvme, md5, sha1, sha256 or sha512. Repeatable.",
            valueName: "ALGO=HEX"))
    var checksum: [ExpectedDigest] = []

    @Option(
        help: ArgumentHelp(
            "A list that has the files' digests, such as SHA256SUMS or file.iso.sha256. Repeatable.",
            valueName: "URL|FILE"))
    var checksumFrom: [String] = []

    @Option(
        name: [.long, .customLong("tries")],
        help: ArgumentHelp(
            "Failures in a row without a byte of progress before giving up. (default: 10)", valueName: "N"))
    var retry: RetryCount?

    @Option(
        name: [.long, .customLong("retry-wait"), .customLong("waitretry")],
        help: ArgumentHelp(
            "How long to wait before another attempt. (default: up to 500 ms, and twice as long each time)",
            valueName: "TIME"))
    var retryDelay: Seconds?

    @Option(
        help: ArgumentHelp(
            "How long after the last byte of progress to try again. (default: no limit)", valueName: "TIME"))
    var retryMaxTime: Seconds?

    @Option(help: ArgumentHelp("How long a connection may take to be made.", valueName: "TIME"))
    var connectTimeout = Seconds(.seconds(15))

    @Option(help: ArgumentHelp("A connection silent for so long is replaced.", valueName: "TIME"))
    var stallTimeout = Seconds(.seconds(30))

    @Option(
        name: [.customShort("m"), .long],
        help: ArgumentHelp(
            "How long a file may take in all; what has come is kept. (default: no limit)", valueName: "TIME"))
    var maxTime: Seconds?

    @Option(help: ArgumentHelp("The longest file accepted.", valueName: "SIZE"))
    var maxFilesize: ByteCount?

    @Flag(
        name: [.customShort("R"), .long], help: "Give the file the date that the server says it was last changed at.")
    var remoteTime = false

    @Option(
        help: ArgumentHelp("How space is reserved: auto and falloc do it, trunc and none do not.", valueName: "HOW"))
    var fileAllocation = FileAllocation.auto

    @Option(
        help: ArgumentHelp(
            "When what is written is made safe from a power cut: every few seconds, only at the end, or never.",
            valueName: "WHEN"))
    var fsync = SyncPolicy.checkpoint

    enum FileAllocation: String, Hashable, CaseIterable, ExpressibleByArgument {
        case auto, falloc, trunc, none

        var allocates: Bool {
            switch self {
            case .auto, .falloc: true
            case .trunc, .none: false
            }
        }
    }

    mutating func validate() throws {
        if let size = self.minSplitSize, size.bytes < 1 { throw ValidationError("--min-split-size is at least 1") }
        if self.maxFilesize?.bytes == 0 { throw ValidationError("--max-filesize is at least 1") }
    }

    func apply(to request: inout DownloadRequest) {
        request.segments = self.segments.segments
        request.splitLengthMinimum = self.minSplitSize?.bytes
        request.onChange = self.onChange
        request.digests += self.checksum.filter { !request.digests.contains($0) }
        request.retries = self.retry?.count
        request.retryDelay = self.retryDelay?.duration
        request.retryTime = self.retryMaxTime?.duration
        request.stallTimeout = self.stallTimeout.duration
        request.timeLimit = self.maxTime?.duration
        request.lengthMaximum = self.maxFilesize?.bytes ?? .max
        request.allocates = self.fileAllocation.allocates
        request.syncPolicy = self.fsync
        request.keepsRemoteTime = self.remoteTime
    }

    func apply(to configuration: inout DownloadConfiguration) {
        configuration.connectTimeout = self.connectTimeout.duration
        configuration.memory = self.remember ? .standard : nil
    }
}
