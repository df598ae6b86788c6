import ArgumentParser
import SegmentedDownload
import SegmentedDownloadCore

/// The options for a job of several tasks.
struct JobOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            Fetch only the share of task I of N, from 1/N to N/N. With auto, I and N are those of a Slurm array or step, \
            with auto/N only I, also from JOB_COMPLETION_INDEX of Kubernetes. --limit-rate and -x are for all tasks together.
            """, valueName: "I/N|auto"))
    var shard: ShardArgument?

    @Option(
        help: ArgumentHelp(
            """
            Record finished and failed files of the lists in a directory, so that the next run skips them. \
            (default with --shard: LIST.segdl-job)
            """, valueName: "DIR"), completion: .directory, transform: HomePath.directory)
    var job: String?

    @Flag(
        help: """
            Divide one file among the tasks of --shard. On different machines they write to one file, which must be on a file \
            system that they share, and is complete when all of them are.
            """)
    var oneFile = false

    @Option(
        help: ArgumentHelp(
            """
            With --one-file: when the task's range is complete, wait for the others, and fetch the ranges of those that record \
            no progress for a time, at least 10s.
            """, valueName: "TIME"))
    var stealAfter: Seconds?

    mutating func validate() throws {
        guard self.oneFile else {
            guard self.stealAfter == nil else { throw ValidationError("--steal-after requires --one-file") }
            return
        }
        if let stealAfter, stealAfter.duration < Self.stealAfterMin {
            throw ValidationError(
                "--steal-after must be at least \(Seconds(Self.stealAfterMin)): a task records its progress every \(Seconds(Checkpoints.interval))"
            )
        }
        if self.shard == nil { throw ValidationError("--one-file divides a file among the tasks of --shard I/N") }
        if self.job != nil { throw ValidationError("--job is for lists, so it excludes --one-file") }
    }

    /// Twice the time between two checkpoints: a slow task that is healthy has recorded progress in it.
    private static let stealAfterMin = Checkpoints.interval * 2

    var isGiven: Bool { self.shard != nil || self.job != nil }
}

/// The value of `--shard`.
enum ShardArgument: Hashable, ExpressibleByArgument {
    case given(Shard)
    /// Number and count are in the environment.
    case automatic
    /// Only the number is in the environment.
    case automaticNumber(count: Int)

    init?(argument: String) {
        if argument == "auto" {
            self = .automatic
        } else if argument.hasPrefix("auto/"), let shard = Shard("1/" + argument.dropFirst("auto/".count)) {
            self = .automaticNumber(count: shard.count)
        } else if let shard = Shard(argument) {
            self = .given(shard)
        } else {
            return nil
        }
    }

    var defaultValueDescription: String {
        switch self {
        case .given(let shard): shard.description
        case .automatic: "auto"
        case .automaticNumber(let count): "auto/\(count)"
        }
    }

    /// The task that the argument means.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the environment does not say which task this is.
    func shard(in environment: [String: String]) throws(DownloadError) -> Shard {
        switch self {
        case .given(let shard): return shard
        case .automatic: return try SchedulerEnvironment(environment).shard()
        case .automaticNumber(let count): return try SchedulerEnvironment(environment).shard(of: count)
        }
    }
}
