import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Measures the download rate with different numbers of segments.
struct BenchCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measures the download rate with 1, 2, 4 and more segments.",
        usage: "segdl bench [options] URL",
        discussion: """
            Fetches the file once with each number of segments, for ten seconds at most, and deletes it. The knee is \
            the smallest number that reaches 95 % of the highest rate. Use a large file: with a short one, most of the \
            time is spent on connecting.

              segdl bench https://example.org/file.iso
              segdl bench --counts 4,8,auto --rounds 3 --seconds 30 https://example.org/file.iso
            """
    )

    @Argument(help: ArgumentHelp("The file to fetch.", valueName: "URL"))
    var url: String

    @Option(
        name: [.customShort("s", allowingJoined: true), .long],
        help: ArgumentHelp("The numbers of segments to measure, separated by commas.", valueName: "LIST"))
    var counts = SegmentCounts([
        .exactly(1), .exactly(2), .exactly(4), .exactly(8), .exactly(16), .exactly(32), .automatic,
    ])

    @Option(help: ArgumentHelp("The maximum time for each measurement.", valueName: "TIME"))
    var seconds = Seconds(.seconds(10))

    @Option(help: ArgumentHelp("Measure each number N times and print the median.", valueName: "N"))
    var rounds = 1

    @Option(
        name: [.customShort("d", allowingJoined: true), .long, .customShort("P", allowingJoined: true)],
        help: ArgumentHelp("The directory for the temporary files. Its disk affects the rate.", valueName: "DIR"),
        completion: .directory, transform: HomePath.directory)
    var dir = "."

    @Option(help: ArgumentHelp("The maximum time to establish a connection.", valueName: "TIME"))
    var connectTimeout = Seconds(.seconds(15))

    @OptionGroup(title: "Requests") var identity: IdentityOptions
    @OptionGroup(title: "Network") var network: NetworkOptions

    @Flag(help: "Write one JSON object a line.")
    var json = false

    mutating func validate() throws {
        if self.rounds < 1 { throw ValidationError("--rounds must be at least 1") }
        if self.dir.isEmpty { throw ValidationError("--dir is empty") }
    }

    func perform() async -> ExitCode {
        await CommandOutput.run { output in
            try DescriptorLimit.check(others: SignalSource.descriptorCount)
            let signals = SignalSource()
            defer { signals.cancel() }
            var report = BenchReport()
            let trial = BenchTrial(
                request: try self.request, configuration: try self.configuration, limit: self.seconds.duration)
            if !self.json { output.send(BenchReport.heading + "\n") }
            for segments in self.counts.values {
                var figures: [BenchFigures] = []
                for _ in 0..<self.rounds {
                    switch try await trial.run(segments, until: signals) {
                    case .measured(let run): figures.append(run)
                    case .interrupted(let number): return ExitCode(signal: number)
                    }
                }
                let row = report.add(segments, figures)
                output.send((self.json ? row.jsonLine : row.text) + "\n")
            }
            output.send((self.json ? report.knee.jsonLine : report.knee.text) + "\n")
            return .ok
        }
    }

    private var request: DownloadRequest {
        get throws(DownloadError) {
            // A name that is unique to this process and independent of the server.
            let path = FilePath(Path.join(self.dir, ".segdl-bench-\(getpid())"))
            var request = DownloadRequest(try SourceURL(self.url), to: .file(path))
            try self.identity.apply(to: &request)
            request.continuation = .no
            request.ifExists = .overwrite
            try request.validate()
            return request
        }
    }

    private var configuration: DownloadConfiguration {
        get throws(DownloadError) {
            var configuration = DownloadConfiguration()
            configuration.connectTimeout = self.connectTimeout.duration
            let most = self.counts.values.reduce(LimitOptions.connectionsPerHostAlone) { most, segments in
                switch segments {
                case .automatic: most
                case .exactly(let count): max(most, count)
                }
            }
            configuration.limits.connectionsPerHost = most
            configuration.limits.connections = max(configuration.limits.connections, most)
            try self.identity.apply(
                to: &configuration, cookieFiles: OptionLayers(line: self.identity.edits).cookieFiles)
            try self.network.apply(to: &configuration)
            return configuration
        }
    }
}

/// Several values of `-s`.
struct SegmentCounts: Hashable, ExpressibleByArgument {
    let values: [DownloadOptions.Segments]

    init(_ values: [DownloadOptions.Segments]) {
        self.values = values
    }

    init?(argument: String) {
        var values: [DownloadOptions.Segments] = []
        for word in argument.split(separator: ",", omittingEmptySubsequences: false) {
            guard let count = SegmentCount(argument: String(word)) else { return nil }
            values.append(count.segments)
        }
        self.values = values
    }

    var defaultValueDescription: String {
        self.values.map { SegmentCount($0).defaultValueDescription }.joined(separator: ",")
    }
}
