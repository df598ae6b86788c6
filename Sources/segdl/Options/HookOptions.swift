import ArgumentParser

/// Programs that are told how files ended.
struct HookOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A shell command for every file that is complete.",
            discussion: """
                It has the event that --json writes on its standard input, and its main facts as SEGDL_PATH, SEGDL_URL, \
                SEGDL_BYTES, SEGDL_CRC32 and so on. Hooks run one after another beside the downloads and are waited for; \
                what they print goes to standard error, and how they end changes nothing but is said.
                """,
            valueName: "CMD"))
    var onComplete: String?

    @Option(
        help: ArgumentHelp(
            "The same for every file that failed, with SEGDL_CODE, SEGDL_EXIT and SEGDL_MESSAGE.", valueName: "CMD"))
    var onError: String?

    @Flag(help: "A desktop notification at the end of the run (notify-send).")
    var notify = false

    mutating func validate() throws {
        for (option, command) in [("--on-complete", self.onComplete), ("--on-error", self.onError)] {
            guard let command else { continue }
            if command.allSatisfy(\.isWhitespace) { throw ValidationError("\(option) is empty") }
            if command.utf8.contains(0) { throw ValidationError("\(option) holds a NUL character") }
        }
    }
}
