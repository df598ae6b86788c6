/// What happens to the arguments between the shell and the parser.
///
/// Four passes, each a function of the arguments alone:
///
/// 1. ``CompatibilityOptions`` removes options of other programs that are segdl's default, renames those that segdl has
///    under another name, and refuses the others. It is the first, because it applies to what the user typed: a name in
///    the configuration file that is not segdl's is an error there, and the passes after it need to understand segdl's
///    options only.
/// 2. ``StoredOptions`` inserts the run's settings from the configuration file and the environment. It follows the
///    first pass, because the options that the first pass removes may stand before a subcommand. It precedes the
///    others, because a setting may be an option that they rewrite.
/// 3. ``ParserSpelling`` writes options as the parser requires it.
/// 4. ``MirrorArguments`` inserts marks. It is the last, because a mark is neither an option nor an operand, so that no
///    other pass has to skip it.
struct ArgumentPipeline {
    /// The arguments that the parser reads.
    let arguments: [String]
    /// The options of files in the configuration file and the environment, which the parser does not read.
    let layers: OptionLayers
    /// The settings that were inserted into the arguments.
    let settings: [Setting]

    /// - Parameter typed: The arguments without the program's name.
    /// - Throws: ``CompatibilityOptions/Refusal`` or ``ConfigurationFile/Problem``.
    init(_ typed: [String], environment: [String: String]) throws {
        try self.init(typed) { arguments in try StoredOptions(for: arguments, environment: environment) }
    }

    /// - Parameter stored: Returns the stored options for arguments that the first pass has rewritten.
    init(_ typed: [String], stored: ([String]) throws -> StoredOptions) throws {
        let understood = try CompatibilityOptions.understood(typed)
        let stored = try stored(understood)
        let all = stored.inserted(into: understood)
        let spelled = ParserSpelling.spelled(all)
        self.arguments = MirrorArguments.marked(spelled)
        self.layers = stored.layers
        self.settings = stored.settings
    }
}
