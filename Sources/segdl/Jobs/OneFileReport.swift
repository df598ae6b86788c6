import SegmentedDownload
import SegmentedDownloadCore

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The messages about a file that several tasks fetch.
struct OneFileReport {
    private let isQuiet: Bool
    private let writesJSON: Bool
    private let output = LineSink(descriptor: STDOUT_FILENO)
    private let errors = LineSink(descriptor: STDERR_FILENO)

    init(_ output: OutputOptions) {
        self.isQuiet = output.verbosity < .normal
        self.writesJSON = output.json
    }

    init(json: Bool) { (self.isQuiet, self.writesJSON) = (false, json) }

    /// Prints a message.
    ///
    /// - Returns: The exit code for a run that ends with it.
    func say(_ text: String) -> ExitCode {
        if !self.isQuiet { Self.write("segdl: \(text)\n", to: self.errors) }
        return .ok
    }

    /// Prints why nothing was started, or not completed.
    func fail(_ error: any Error) -> ExitCode {
        let error = DownloadError(wrapping: error)
        Self.write(FailureLine(error, of: nil).text + "\n", to: self.errors)
        return ExitCode(error.code)
    }

    /// - Parameter shard: The task that has just ended; nil if there is none.
    func end(
        _ outcome: SharedFile.Outcome, _ file: SharedFile, _ plan: SharedFilePlan, after shard: Shard?
    ) -> ExitCode {
        let path = file.paths.destination
        switch outcome {
        case .assembled(let verified):
            if self.writesJSON {
                let record = AssembledRecord(
                    path: path, bytes: verified.length, tasks: plan.division.count, crc32: verified.crc?.hex,
                    digests: plan.digests.map(\.description))
                Self.write(record.jsonLine + "\n", to: self.output)
            }
            return self.say(
                "\(path.shown) is complete: \(ByteCount(verified.length)) from \(plan.division.count) tasks")
        case .waiting(let shards):
            let others = shards.prefix(Self.namesMax).map(\.description).joined(separator: ", ")
            let waiting =
                "waiting for \(shards.count) of \(plan.division.count) tasks (\(others)\(shards.count > Self.namesMax ? ", …" : ""))"
            guard let shard else {
                return self.fail(
                    DownloadError(
                        .state, "\(path.shown) is not complete: \(waiting)",
                        hint: "Run these tasks (again); the last one completes the file"))
            }
            return self.say("task \(shard) of \(path.shown) is complete; \(waiting)")
        }
    }

    /// 8: more would not fit in a line.
    private static let namesMax = 8

    /// Returns when the text is written: the next line may be of a ``Transfer``, which has sinks of its own.
    private static func write(_ text: String, to sink: LineSink) {
        sink.send(text)
        sink.drain()
    }
}

/// A file that was assembled from the ranges of its tasks, as a JSON object.
struct AssembledRecord: Encodable {
    let v = 1
    let event = "assembled"
    let path: String
    let bytes: Int64
    let tasks: Int
    let crc32: String?
    let digests: [String]
}
