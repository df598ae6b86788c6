import ArgumentParser
import SegmentedDownload

/// Adds files to the queue of the background service.
struct AddCommand: ListingCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Adds files to the queue of the background service.",
        usage: "segdl add [options] URL…",
        discussion: """
            The options of a file are the same as without add. Options of the whole run, such as --proxy or --limit-rate, \
            belong to the service: give them to segdl daemon, or change them with segdl limits. It returns once the \
            files are stored, and prints their IDs.

              segdl add https://example.org/file.iso
              segdl add --paused -i list.txt
            """)

    @Argument(help: ArgumentHelp("The files to fetch.", valueName: "URL"))
    var urls: [String] = []

    @Flag(help: "Do not start the files until they are resumed.")
    var paused = false

    @Flag(help: "Put the files before all others.")
    var first = false

    @OptionGroup var service: ServiceOptions
    @OptionGroup(title: "Lists") var input: InputOptions
    @OptionGroup(title: "Destination") var destination: DestinationOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions
    @OptionGroup(title: "Speed") var limits: LimitOptions
    @OptionGroup(title: "Sources") var labels: LabelOptions
    @OptionGroup(title: "Requests") var identity: IdentityOptions
    @OptionGroup(title: "Network") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(title: "Hooks") var hooks: HookOptions

    mutating func validate() throws { try self.validateFiles() }

    func perform(_ fetch: FetchRun) async -> ExitCode {
        await Submitter(
            output: self.output, paused: self.paused, first: self.first,
            absence: self.service.noAutostart ? .fail : .start
        ).run(self, fetch)
    }
}
