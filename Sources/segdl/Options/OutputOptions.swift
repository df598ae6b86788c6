import ArgumentParser

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// What a run tells, and to whom.
struct OutputOptions: ParsableArguments {
    enum Verbosity: Int, Hashable, Comparable {
        /// Nothing but errors, and what a signal left.
        case quiet
        /// How each file ended, and what is to be known of it.
        case normal
        /// Also retries and segments.
        case verbose

        static func < (one: Verbosity, other: Verbosity) -> Bool { one.rawValue < other.rawValue }
    }

    enum Progress: String, Hashable, CaseIterable, ExpressibleByArgument {
        case bar, map, log, none
    }

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Print retries and segments too.")
    var verbose = false

    @Option(
        help: ArgumentHelp(
            """
            Progress on standard error: a bar on a terminal, a log elsewhere, unless told. A map shows which parts of a file are \
            whole (# or a block), partly written (+), being fetched (-), to be tried again (!) and not begun (.).
            """, valueName: "HOW"))
    var progress: Progress?

    @Flag(help: "Write events to standard output, one JSON object a line.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "A file that gets a line of JSON for every file that is done or has failed.", valueName: "FILE"))
    var keepHistory: String?

    @Option(
        help: ArgumentHelp("A file that gets the run's figures at its end, as one JSON object.", valueName: "FILE"))
    var stats: String?

    @Flag(help: "Leave ~/.config/segdl/config, which has long names of options, one a line, unread.")
    var noConfig = false

    @Flag(help: "Ask the servers, say what would be fetched, and write nothing.")
    var dryRun = false

    mutating func validate() throws {
        if self.stats?.isEmpty == true { throw ValidationError("--stats is empty") }
        if self.keepHistory?.isEmpty == true { throw ValidationError("--keep-history is empty") }
        if self.quiet, self.verbose { throw ValidationError("--quiet and --verbose contradict each other") }
    }

    var verbosity: Verbosity {
        if self.verbose { return .verbose }
        // Whoever reads events needs no words beside them, unless asked for.
        return self.quiet || (self.json && self.progress == nil) ? .quiet : .normal
    }

    private var style: Progress {
        if self.verbosity == .quiet { return .none }
        if let progress = self.progress { return progress }
        return self.json ? .none : Terminal(of: STDERR_FILENO) == nil ? .log : .bar
    }

    /// Who is told, in order: programs, then people.
    func reporters(
        filesCount: Int, output: LineSink, console: Console, elapsed: @escaping @Sendable () -> Duration
    ) -> [any ProgressReporter] {
        var reporters: [any ProgressReporter] = []
        let terminal = Terminal(assuming: STDERR_FILENO)
        if self.json { reporters.append(EventWriter(sink: output, elapsed: elapsed)) }
        switch self.style {
        case .bar:
            reporters.append(
                filesCount > 1
                    ? BoardReporter(console: console, filesCount: filesCount, terminal: terminal)
                    : BarReporter(console: console, terminal: terminal, elapsed: elapsed))
        case .map: reporters.append(MapReporter(console: console, filesCount: filesCount, terminal: terminal))
        case .log: reporters.append(LogReporter(console: console, elapsed: elapsed))
        case .none: break
        }
        if let path = self.stats { reporters.append(StatsReporter(path: path, console: console)) }
        return reporters + [
            MessageReporter(console: console, verbosity: self.verbosity, isAlone: filesCount <= 1)
        ]
    }
}
