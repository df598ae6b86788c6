import SegmentedDownload

/// The message about a paused download: its progress and the command that resumes it.
struct PausedLine {
    private let name: String
    /// With the total, and without it for a narrow terminal.
    private let amounts: (long: String, short: String)
    private let advice: String
    private let isCommand: Bool
    /// 8 columns: a shorter name does not identify a file.
    private static let nameMin = 8

    /// Bytes of the file that a later run can use.
    let bytesKept: Int64

    init(_ path: String, _ progress: DownloadProgress) {
        let saved = try? SavedDownload(reading: path)
        let total = progress.bytesTotal ?? saved?.bytesTotal
        let done = ByteCount(progress.bytesTotal == nil ? saved?.bytesDone ?? progress.bytesDone : progress.bytesDone)
        self.name = path.shown
        self.amounts = (total.map { done.description(of: ByteCount($0)) } ?? "\(done)", "\(done)")
        self.bytesKept = saved == nil ? 0 : done.bytes
        let isTask = SharedFile.containsTask(path)
        let advice = isTask ? nil : saved.map { ResumeAdvice($0, at: path) }
        self.isCommand = advice?.isCommand ?? false
        self.advice =
            if let advice {
                advice.text
            } else if saved != nil {
                "To resume: the same command"
            } else if total == nil, done.bytes > 0 {
                "It cannot be resumed because its length is unknown; the same command starts over"
            } else {
                "Nothing was kept; the same command starts over"
            }
    }

    /// `segdl: paused: file.iso, 3.10 of 4.00 GiB. To resume: segdl resume file.iso`
    ///
    /// - Parameter terminal: If the text does not fit, the advice has a line of its own, and the name may be shortened.
    ///   The command stays whole, so that it can be copied. Nil for one line of any length.
    func lines(on terminal: Terminal? = nil) -> [String] {
        let head = self.head(self.name, self.amounts.long)
        guard let terminal else { return ["\(head) \(self.advice)"] }
        let width = terminal.messageWidth
        if head.columns + 1 + self.advice.columns <= width { return ["\(terminal.rendered(head)) \(self.advice)"] }
        let room = width - self.head("", self.amounts.long).columns
        let isRoomy = room >= min(self.name.columns, Self.nameMin)
        let amount = isRoomy ? self.amounts.long : self.amounts.short
        let name = self.name.shortened(to: max(width - self.head("", amount).columns, Self.nameMin))
        return [terminal.rendered(self.head(name, amount))]
            + (self.isCommand ? [self.advice] : self.advice.wrapped(to: width))
    }

    private func head(_ name: String, _ amount: String) -> String { "segdl: paused: \(name), \(amount)." }
}
