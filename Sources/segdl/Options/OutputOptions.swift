import ArgumentParser

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The options for messages, progress, events and files with figures.
struct OutputOptions: ParsableArguments {
    enum Verbosity: Int, Hashable, Comparable {
        /// Errors and paused files only.
        case quiet
        /// Also completed files and notes.
        case normal
        /// Also retries and segments.
        case verbose

        static func < (one: Verbosity, other: Verbosity) -> Bool { one.rawValue < other.rawValue }
    }

    enum Progress: String, Hashable, CaseIterable, ExpressibleByArgument {
        case bar, map, log, none
    }

    @Flag(name: .shortAndLong, help: "Print errors only.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Also print retries and segments.")
    var verbose = false

    @Option(
        help: ArgumentHelp(
            """
            The form of progress on standard error: bar, map, log or none. A map shows which parts of a file are \
            complete (# or a block), partly written (+), being fetched (-), waiting for a retry (!) and not started \
            (.). (default: bar on a terminal, log elsewhere)
            """, valueName: "HOW"))
    var progress: Progress?

    @Flag(help: "Write events to standard output, one JSON object a line.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "Append one line of JSON to this file for every file that completes or fails.", valueName: "FILE"),
        completion: .file(), transform: HomePath.file)
    var keepHistory: String?

    @Option(
        help: ArgumentHelp("At the end, write figures of the run to this file as JSON.", valueName: "FILE"),
        completion: .file(), transform: HomePath.file)
    var stats: String?

    @Flag(help: "Do not read the configuration file, ~/.config/segdl/config.")
    var noConfig = false

    @Flag(help: "Probe the servers, print what would be fetched, and write nothing.")
    var dryRun = false

    mutating func validate() throws {
        if self.stats?.isEmpty == true { throw ValidationError("--stats is empty") }
        if self.keepHistory?.isEmpty == true { throw ValidationError("--keep-history is empty") }
        if self.quiet, self.verbose { throw ValidationError("--quiet and --verbose contradict each other") }
    }

    var verbosity: Verbosity {
        if self.verbose { return .verbose }
        // With --json the events say the same, so messages are printed only with --progress.
        return self.quiet || (self.json && self.progress == nil) ? .quiet : .normal
    }

    private var style: Progress {
        if self.verbosity == .quiet { return .none }
        if let progress = self.progress { return progress }
        return self.json ? .none : Terminal(of: STDERR_FILENO) == nil ? .log : .bar
    }

    /// The reporters of a run: events first, then progress, then messages.
    ///
    /// - Parameter filesCount: Nil if it is unknown until the last file is given.
    func reporters(
        filesCount: Int?, output: LineSink, console: Console, elapsed: @escaping @Sendable () -> Duration
    ) -> [any ProgressReporter] {
        var reporters: [any ProgressReporter] = []
        if self.json { reporters.append(EventWriter(sink: output, elapsed: elapsed)) }
        switch self.style {
        case .bar, .map:
            reporters.append(
                BoardReporter(
                    console: console, terminal: Terminal(assuming: STDERR_FILENO), filesCount: filesCount,
                    hasMaps: self.style == .map, elapsed: elapsed))
        case .log: reporters.append(LogReporter(console: console, elapsed: elapsed))
        case .none: break
        }
        if let path = self.stats { reporters.append(StatsReporter(path: path, console: console)) }
        return reporters + [
            MessageReporter(
                console: console, verbosity: self.verbosity, filesCount: filesCount ?? .max,
                terminal: Terminal(of: STDERR_FILENO))
        ]
    }
}
