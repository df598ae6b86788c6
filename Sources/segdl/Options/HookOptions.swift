import ArgumentParser

/// Programs that run when files are complete or have failed.
struct HookOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Run a shell command for every file that is complete.",
            discussion: """
                Its standard input is the event that --json writes, and its environment has the main fields as \
                SEGDL_PATH, SEGDL_URL, SEGDL_BYTES, SEGDL_CRC32 and so on. Commands start in the order in which \
                files end, in parallel with the downloads and at most four at once, and segdl waits for them. One that \
                has run for 10 minutes is reported and delays no other one; timeout(1) ends one earlier. Their output goes to standard error. segdl reports a \
                command that fails; the exit status does not change.
                """,
            valueName: "CMD"))
    var onComplete: String?

    @Option(
        help: ArgumentHelp(
            "Run a shell command for every file that failed; it also has SEGDL_CODE, SEGDL_EXIT and SEGDL_MESSAGE.",
            valueName: "CMD"))
    var onError: String?

    @Flag(help: "Show a desktop notification at the end of the run (notify-send).")
    var notify = false

    mutating func validate() throws {
        for (option, command) in [("--on-complete", self.onComplete), ("--on-error", self.onError)] {
            guard let command else { continue }
            if command.allSatisfy(\.isWhitespace) { throw ValidationError("\(option) is empty") }
            if command.utf8.contains(0) { throw ValidationError("\(option) contains a NUL character") }
        }
    }
}
