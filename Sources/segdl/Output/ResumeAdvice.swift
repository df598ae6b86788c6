import SegmentedDownload

/// What to type to resume an interrupted download.
struct ResumeAdvice {
    /// Whether the text is a command and nothing else.
    let isCommand: Bool
    let text: String

    init(_ saved: SavedDownload, at path: String) {
        let command = "To resume: segdl resume \(path.shellWord)"
        // Their values are not stored, because they may be secret.
        let needed = saved.fieldsNeeded.map(\.shown)
        self.isCommand = needed.isEmpty
        self.text = needed.isEmpty ? command : "\(command) with the same \(needed.joined(separator: ", ")) as before"
    }
}
