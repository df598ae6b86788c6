import ArgumentParser
import SegmentedDownload

/// A subcommand that fetches files, of whose hosts the configuration file may say something.
protocol FetchingCommand: SegdlSubcommand {
    var fetch: FetchOptions { get set }
}

/// The command as it is for the files of a host: its arguments are read anew, with what the configuration file says of that host between what
/// it says of all and the command line.
final class HostProfiles {
    private let layers: LayeredArguments
    private let said: Set<String>
    /// By arguments, so that a long list is not read anew for every line.
    private var known: [[String]: any FetchingCommand] = [:]

    /// - Parameter base: what was read from the arguments for all files.
    init(_ layers: LayeredArguments, base: FetchOptions) {
        self.layers = layers
        self.said = layers.topics(of: base.identity)
    }

    /// The command for a file; absent where nothing is said of its source's host.
    ///
    /// - Parameter options: what a list says of the file, which is not done here, and has the last word.
    func command(
        for source: SourceURL, besides options: [InputList.Option] = []
    ) throws(DownloadError) -> (any FetchingCommand)? {
        var said = self.said
        for option in options where option.key == ListKey.header.rawValue {
            said.insert(String(option.value.prefix { $0 != ":" }).lowercased())
        }
        if source.credentials != nil { said.insert("authorization") }
        guard let arguments = self.layers.arguments(for: source.origin.host, besides: said) else { return nil }
        if let known = self.known[arguments] { return known }
        let command: any FetchingCommand
        do {
            guard let parsed = try SegdlCommand.parseAsRoot(SegdlCommand.spelledOut(arguments)) as? any FetchingCommand
            else { return nil }
            command = parsed
        } catch {
            throw DownloadError(
                .usage, "what the configuration file says of \(source.host): \(SegdlCommand.words(of: error))",
                hint: "Put it right, or say --no-config")
        }
        self.known[arguments] = command
        return command
    }
}
