import SegmentedDownload

/// One line that says how far something has come, for any width.
struct ProgressBar: Hashable {
    /// What is fetched: a file's name, or how many files.
    var title: String
    var progress: DownloadProgress
    /// Fewer columns of the title say nothing.
    var titleMin = 8
    /// Whether the share that is done is drawn, too.
    var hasBar = true
    /// What keeps it from going on, in place of how it goes.
    var remark: String?

    /// Less says too little to be worth its columns.
    private static let barMin = 10

    /// The line in at most `width` columns.
    ///
    /// What does not fit goes in the order of what is missed least: the bar, the connections, the time left, the rate.
    ///
    /// - Parameter titleWidth: the columns of the titles above and below, where bars are to stand under each other; what
    ///   is not known then leaves its columns empty.
    func line(width: Int, titleWidth: Int? = nil) -> String {
        if let remark { return "\(self.title): \(remark)".clipped(to: max(width, 0)) }
        let fields = self.fields(isTable: titleWidth != nil)
        for count in stride(from: fields.count, to: 0, by: -1) {
            let kept = fields.prefix(count)
            // Aligned, so that the line does not jump, if there is room for that; a table is nothing without.
            let aligned = kept.map { "  " + $0.text.rightAligned(in: $0.width) }
            for tail in titleWidth == nil ? [aligned, kept.map { " " + $0.text }] : [aligned] {
                let text = tail.joined()
                let room = width - text.columns
                if room >= min(titleWidth ?? self.title.columns, self.titleMin) {
                    return self.head(room, titleWidth) + text
                }
            }
        }
        return self.title.shortened(to: max(width, 0))
    }

    /// The title and, if there is room and a total, the bar, in exactly `room` columns.
    private func head(_ room: Int, _ titleWidth: Int?) -> String {
        // A name may take what the bar can spare.
        let titleMax = max(
            room / 2, min(self.title.columns, self.titleMin),
            min(titleWidth ?? self.title.columns, room - Self.barMin - 4))
        let titleRoom = min(titleWidth ?? titleMax, titleMax)
        let title = self.title.shortened(to: titleRoom).padded(to: titleWidth == nil ? 0 : titleRoom)
        let barRoom = room - title.columns - 4
        guard self.hasBar, let fraction = self.progress.fraction, barRoom >= Self.barMin else {
            return self.title.shortened(to: room).padded(to: room)
        }
        let done = Int(min(max(fraction, 0), 1) * Double(barRoom))
        let isMoving = done < barRoom
        let bar =
            String(repeating: "=", count: done) + (isMoving ? ">" : "")
            + String(repeating: " ", count: max(barRoom - done - 1, 0))
        return "\(title)  [\(bar)]"
    }

    /// The most important first, each with the width of its usual values.
    private func fields(isTable: Bool) -> [(text: String, width: Int)] {
        let text = ProgressText(self.progress, separator: "/")
        let connections = self.progress.connections > 0 ? "\(self.progress.connections)x" : nil
        let fields: [(text: String?, width: Int)] = [
            (text.percent, 4), (text.amount, isTable ? 15 : 11), (text.rate, isTable ? 12 : 11),
            (text.timeLeft.map { Seconds($0).clock }, 5), (connections, 3),
        ]
        return fields.compactMap { text, width in (text ?? (isTable ? "" : nil)).map { ($0, width) } }
    }
}
