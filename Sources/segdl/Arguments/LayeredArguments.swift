/// The arguments of a run: what the configuration file says of all files, of those of a host, and the command line, which has the last word.
struct LayeredArguments: Hashable {
    /// The subcommand, if one is named.
    private let command: [String]
    private let settings: [Setting]
    private let sections: [HostSection]
    private let line: [String]

    /// Those of `resume` and `verify`, which know where their files are.
    private static let placing: Set<String> = [
        "output", "out", "dir", "name-template", "continue", "if-exists", "no-glob", "globoff", "no-create-dirs",
        "input-file", "metalink-file", "input-metalink", "json-path", "url-key", "name-key", "base-url",
    ]

    /// - Parameter arguments: as they were typed.
    init(_ arguments: [String], environment: (String) -> String?) throws(ConfigurationFile.Problem) {
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        let isRefused = arguments[..<end].contains("--no-config")
        let rest = arguments[..<end].filter { $0 != "--no-config" } + arguments[end...]
        let command = arguments.first.flatMap { SegdlCommand.subcommandNames.contains($0) ? $0 : nil }
        let isRead = !isRefused && command.map { ["get", "resume", "verify"].contains($0) } ?? true
        self.init(
            isRead ? try ConfigurationFile(environment) : nil, command: command,
            line: command == nil ? Array(rest) : Array(rest.dropFirst()))
    }

    init(_ file: ConfigurationFile?, command: String?, line: [String]) {
        self.command = command.map { [$0] } ?? []
        self.line = line
        let isPlaced = command == nil || command == "get"
        let isKept = { (setting: Setting) in isPlaced || !Self.placing.contains(setting.name) }
        self.settings = (file?.settings ?? []).filter(isKept)
        self.sections = (file?.sections ?? []).map { section in
            var section = section
            section.settings.removeAll { !isKept($0) }
            return section
        }
    }

    /// Those for all files.
    var arguments: [String] { self.command + self.settings.flatMap(\.arguments) + self.line }

    /// Those for the files of a host; absent where nothing is said of it.
    ///
    /// - Parameter said: topics that somebody speaks of who has the last word.
    func arguments(for host: String, besides said: Set<String>) -> [String]? {
        let sections = self.sections.enumerated().compactMap { number, section in
            section.rank(for: host).map { (rank: $0, number: number, settings: section.settings) }
        }.sorted { ($0.rank, $0.number) < ($1.rank, $1.number) }
        guard !sections.isEmpty else { return nil }
        var said = said
        var arguments: [String] = []
        for settings in ([self.settings] + sections.map(\.settings)).reversed() {
            let kept = settings.filter { setting in setting.topic.map { !said.contains($0) } ?? true }
            said.formUnion(settings.compactMap(\.topic))
            arguments = kept.flatMap(\.arguments) + arguments
        }
        return self.command + arguments + self.line
    }

    /// What the command line says of fields, as far as that differs from what the file says.
    ///
    /// - Parameter identity: read from ``arguments``.
    func topics(of identity: IdentityOptions) -> Set<String> {
        func texts(_ names: Set<String>) -> [String] {
            self.settings.compactMap { setting in
                guard names.contains(setting.name), case .text(let text) = setting.value else { return nil }
                return text
            }
        }
        let headers = identity.header.dropFirst(texts(["header"]).count)
        var topics = Set(headers.map { $0.name.lowercased() })
        if identity.userAgent != texts(["user-agent"]).last { topics.insert("user-agent") }
        if identity.referer != texts(["referer"]).last { topics.insert("referer") }
        if identity.cookie.count > texts(["cookie"]).count { topics.insert("cookie") }
        if identity.user != texts(["user", "http-user"]).last || identity.bearer != texts(["oauth2-bearer"]).last {
            topics.insert("authorization")
        }
        return topics
    }
}
