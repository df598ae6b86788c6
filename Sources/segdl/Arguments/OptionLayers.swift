import SegmentedDownload

/// The layers of options for files, in the order of their precedence: configuration file, host sections, environment, command line.
/// The options of a list's entry follow them.
struct OptionLayers {
    /// Of the configuration file, for all files.
    var settings: [FileEdit] = []
    /// Of the configuration file, for the files of some hosts.
    var sections: [HostSection] = []
    /// Of `SEGDL_…` variables.
    var environment: [FileEdit] = []
    /// Of the command line.
    var line: [FileEdit] = []

    /// Whether a password that is missing is asked for at the terminal. The service has none.
    var asksPasswords = true

    private static let prompt = PasswordPrompt()
    private var passwords: PasswordPrompt? { self.asksPasswords ? Self.prompt : nil }

    /// Applies all layers but the command line to the request of a file.
    func applyStored(to draft: inout RequestDraft) throws(DownloadError) {
        try draft.apply(self.settings, asking: self.passwords)
        let host = draft.request.source.origin.host
        let sections = self.sections.enumerated().compactMap { number, section in
            section.rank(for: host).map { (rank: $0, number: number, edits: section.edits) }
        }.sorted { ($0.rank, $0.number) < ($1.rank, $1.number) }
        for section in sections { try draft.apply(section.edits) }
        try draft.apply(self.environment, asking: self.passwords)
    }

    /// Applies the options of the command line.
    func applyLine(to draft: inout RequestDraft) throws(DownloadError) {
        try draft.apply(self.line, asking: self.passwords)
    }

    /// Applies all layers to the request of a file.
    func apply(to draft: inout RequestDraft) throws(DownloadError) {
        try self.applyStored(to: &draft)
        try self.applyLine(to: &draft)
    }

    /// The files of cookies for all hosts.
    var cookieFiles: [String] {
        (self.settings + self.environment + self.line).filter { $0.option.name == "cookie" }.map(\.text)
            .filter { !$0.contains("=") && !$0.isEmpty }
    }

    /// Without the options that say where files go.
    var withoutPlacement: OptionLayers {
        let isKept = { (edit: FileEdit) in !edit.option.isPlacement }
        var layers = self
        layers.settings = self.settings.filter(isKept)
        layers.environment = self.environment.filter(isKept)
        for index in layers.sections.indices { layers.sections[index].edits.removeAll { !isKept($0) } }
        return layers
    }
}
