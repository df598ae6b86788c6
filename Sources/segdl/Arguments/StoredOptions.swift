import SegmentedDownload

/// The options below the command line: those of the configuration file and of the environment.
struct StoredOptions {
    /// The options of files.
    let layers: OptionLayers
    /// The options of the run.
    let settings: [Setting]

    /// Run settings that say which files are fetched. `resume` and `verify` do not have them.
    private static let listing: Set<String> = [
        "no-glob", "globoff", "input-file", "metalink-file", "input-metalink", "json-path", "url-key", "name-key",
        "base-url", "list-from", "accept", "reject",
    ]

    /// Whether only the background service has an option.
    private static func isOfService(_ name: String) -> Bool {
        name.hasPrefix("rpc-") || name == "web" || name == "idle-exit"
    }

    /// The options for a command line. `--no-config` excludes the configuration file, and subcommands that fetch
    /// nothing have no stored options.
    init(for arguments: [String], environment: [String: String]) throws(ConfigurationFile.Problem) {
        let isRefused = ArgumentWalk(arguments).items.contains { $0.word == Self.refusal }
        let command = Self.command(of: arguments)
        let isFetching = command.map { ["get", "add", "resume", "adopt", "verify", "daemon"].contains($0) } ?? true
        try self.init(
            isFetching && !isRefused ? ConfigurationFile { environment[$0] } : nil, command: command,
            environment: isFetching ? environment : [:])
    }

    init(
        _ file: ConfigurationFile?, command: String?, environment: [String: String] = [:]
    ) throws(ConfigurationFile.Problem) {
        let variables = try EnvironmentSettings(environment)
        let layers = OptionLayers(
            settings: file?.edits ?? [], sections: file?.sections ?? [], environment: variables.edits)
        let isPlacing = command == nil || command == "get" || command == "add"
        self.layers = isPlacing ? layers : layers.withoutPlacement
        self.settings = ((file?.settings ?? []) + variables.settings).filter {
            (isPlacing || !Self.listing.contains($0.name)) && (command == "daemon" || !Self.isOfService($0.name))
        }
    }

    /// The arguments with the run's settings before all options, so that the command line takes precedence, and without
    /// `--no-config`.
    func inserted(into arguments: [String]) -> [String] {
        let command = Self.command(of: arguments).map { [$0] } ?? []
        let line = ArgumentWalk(arguments).replacingItems { $0.word == Self.refusal ? [] : $0.arguments }
        return command + self.settings.flatMap(\.arguments) + line.dropFirst(command.count)
    }

    /// The option that excludes the configuration file.
    private static let refusal = "--no-config"

    /// The subcommand; nil if the arguments do not begin with one. `--no-config` may precede it.
    static func command(of arguments: [String]) -> String? {
        arguments.first { $0 != Self.refusal }.flatMap { SegdlCommand.subcommandNames.contains($0) ? $0 : nil }
    }
}

/// The options in `SEGDL_…` variables: `SEGDL_LIMIT_RATE=1M` is `--limit-rate 1M`.
struct EnvironmentSettings {
    /// Options of files.
    private(set) var edits: [FileEdit] = []
    /// Options of the run.
    private(set) var settings: [Setting] = []

    /// Variables that are no option are ignored: hooks get some, and scripts may have their own.
    init(_ environment: [String: String]) throws(ConfigurationFile.Problem) {
        for (variable, value) in environment.sorted(by: { $0.key < $1.key })
        where variable.hasPrefix("SEGDL_") && !value.isEmpty {
            let name = variable.dropFirst("SEGDL_".count).lowercased().replacing("_", with: "-")
            if let (option, edit) = FileOption.edit(name, value) {
                guard option.scope == .anywhere else { continue }
                guard let edit = option.isFlag ? FileOption.edit(name, Self.truth(value))?.edit : edit else {
                    throw ConfigurationFile.Problem(
                        message: "\(variable) must be \(option.expectation(insteadOf: value))",
                        hint: "Correct it, or unset it")
                }
                self.edits.append(edit)
            } else if let isFlag = Self.runOptions[name] {
                let text = isFlag ? Self.truth(value) : value
                self.settings.append(Setting(name: name, value: Setting.Value(text, isFlag: isFlag), place: variable))
            }
        }
    }

    /// A flag's value as the configuration file has it.
    private static func truth(_ value: String) -> String {
        switch value.lowercased() {
        case "1", "yes", "on", "true": "true"
        case "0", "no", "off", "false": "false"
        default: value
        }
    }

    /// The long names of the run's options, and whether each is a flag.
    private static let runOptions: [String: Bool] = {
        let pairs = (OptionOutline.get?.options ?? []).flatMap { option in
            option.longNames.filter { $0 != "help" && $0 != "version" }.map { ($0, option.isFlag) }
        }
        return Dictionary(pairs) { first, _ in first }
    }()
}
