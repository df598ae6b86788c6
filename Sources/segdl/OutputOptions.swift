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
        case bar, log, none
    }

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Print retries and segments too.")
    var verbose = false

    @Option(
        help: ArgumentHelp(
            "Progress on standard error: a bar on a terminal, a log elsewhere, unless told.", valueName: "HOW"))
    var progress: Progress?

    @Flag(help: "Write events to standard output, one JSON object a line.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "A file that gets a line of JSON for every file that is done or has failed.", valueName: "FILE"))
    var keepHistory: String?

    mutating func validate() throws {
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
        case .log: reporters.append(LogReporter(console: console, elapsed: elapsed))
        case .none: break
        }
        return reporters + [
            MessageReporter(console: console, verbosity: self.verbosity, isAlone: filesCount <= 1)
        ]
    }
}
