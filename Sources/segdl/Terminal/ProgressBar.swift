import SegmentedDownload

/// A line of progress, for any width.
struct ProgressBar: Hashable {
    /// The file's name, or the number of files.
    var title: String
    var progress: DownloadProgress
    /// The minimum columns of a readable title.
    var titleMin = 8
    /// Whether a bar is drawn.
    var hasBar = true
    /// Replaces the figures, for example while the file waits for a retry.
    var remark: String?

    /// The minimum columns of a useful bar.
    private static let barMin = 10

    /// The line in at most `width` columns.
    ///
    /// Fields that do not fit are left out in this order: the bar, the connections, the time left, the rate.
    ///
    /// - Parameter titleWidth: The columns of the titles in a table. Unknown fields then leave their columns empty.
    func line(width: Int, titleWidth: Int? = nil) -> String {
        if let remark { return "\(self.title): \(remark)".clipped(to: max(width, 0)) }
        let fields = self.fields(isTable: titleWidth != nil)
        for count in stride(from: fields.count, to: 0, by: -1) {
            let kept = fields.prefix(count)
            // Fields are aligned if there is room, so that they do not move. In a table they always are.
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
        // The title may use the columns that the bar does not need.
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
