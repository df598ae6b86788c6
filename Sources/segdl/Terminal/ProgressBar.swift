import SegmentedDownload

/// A line of progress, for any width.
struct ProgressBar: Hashable {
    /// The file's name, or the number of files.
    var title: String
    var progress: DownloadProgress
    /// The time since the start.
    var elapsed: Duration
    /// The minimum columns of a readable title.
    var titleMin = 8
    /// Whether a bar is drawn.
    var hasBar = true
    /// Replaces the figures, for example while the file waits for a retry.
    var remark: String?

    private struct Field {
        let text: String
        /// The columns of the usual values. An unknown value leaves them empty, so that the others do not move.
        let width: Int
        var isLeftAligned = false
        /// Of the fields that do not fit, the one with the highest rank is left out first.
        let rank: Int

        var cell: String {
            self.isLeftAligned ? self.text.padded(to: self.width) : self.text.rightAligned(in: self.width)
        }
    }

    /// The minimum columns of a useful bar.
    private static let barMin = 10

    /// The line in at most `width` columns.
    ///
    /// What does not fit is left out, in this order: the bar, the connections, the time elapsed, the bytes, the time
    /// left, the rate. In a table the time elapsed comes before the connections.
    ///
    /// - Parameter titleWidth: The columns of the titles in a table; nil for a line of its own.
    func line(width: Int, titleWidth: Int? = nil) -> String {
        if let remark { return self.line(remark, width: width) }
        var fields = self.fields(isTable: titleWidth != nil)
        while let rank = fields.map(\.rank).max() {
            for gap in titleWidth == nil ? ["  ", " "] : ["  "] {
                let tail = fields.map { gap + $0.cell }.joined()
                let room = width - tail.columns
                if room >= min(titleWidth ?? self.title.columns, self.titleMin) {
                    return self.head(room, titleWidth) + tail
                }
            }
            fields.removeAll { $0.rank == rank }
        }
        return self.title.shortened(to: max(width, 0))
    }

    /// A long title is shortened to a third of the line, so that the remark can be read.
    private func line(_ remark: String, width: Int) -> String {
        let room = max(width - remark.columns - 2, width / 3)
        return "\(self.title.shortened(to: room)): \(remark)".clipped(to: max(width, 0))
    }

    /// The title and, if there is room and a total, the bar, in at most `room` columns; in exactly these in a table.
    private func head(_ room: Int, _ titleWidth: Int?) -> String {
        // The title may use the columns that the bar does not need.
        let titleMax = max(
            room / 2, min(self.title.columns, self.titleMin),
            min(titleWidth ?? self.title.columns, room - Self.barMin - 4))
        let titleRoom = min(titleWidth ?? titleMax, titleMax)
        let title = self.title.shortened(to: titleRoom).padded(to: titleWidth == nil ? 0 : titleRoom)
        let barRoom = room - title.columns - 4
        guard self.hasBar, let fraction = self.progress.fraction, barRoom >= Self.barMin else {
            let width = titleWidth.map { self.hasBar ? room : min($0, room) } ?? 0
            return self.title.shortened(to: room).padded(to: width)
        }
        let done = Int(min(max(fraction, 0), 1) * Double(barRoom))
        let isMoving = done < barRoom
        let bar =
            String(repeating: "=", count: done) + (isMoving ? ">" : "")
            + String(repeating: " ", count: max(barRoom - done - 1, 0))
        return "\(title)  [\(bar)]"
    }

    /// In the order of the line. In a table, times from ten minutes on keep their alignment too. A line of its own has neither a percentage nor a time left if the total is unknown.
    private func fields(isTable: Bool) -> [Field] {
        let text = ProgressText(self.progress, separator: "/")
        let hasTotal = isTable || self.progress.bytesTotal != nil
        let connections = self.progress.connections
        let elapsed = Seconds(.seconds(self.elapsed.components.seconds)).clock
        var fields = [
            // `1.24/4.00 GiB` follows upon `102 MiB/4.00 GiB`, which is the longest.
            Field(text: text.amount, width: hasTotal ? 16 : 8, isLeftAligned: hasTotal, rank: hasTotal ? 3 : 0),
            Field(text: text.rate ?? "", width: 10, rank: 1),
            Field(text: "\(elapsed) elapsed", width: isTable ? 13 : 12, rank: isTable ? 5 : 4),
            Field(text: connections > 0 ? "\(connections) conn" : "", width: 7, rank: isTable ? 4 : 5),
        ]
        if hasTotal {
            let left = text.timeLeft.map { "\(Seconds($0).clock) left" }
            fields.insert(Field(text: text.percent ?? "", width: 4, rank: 0), at: 0)
            fields.insert(Field(text: left ?? "", width: isTable ? 10 : 9, rank: 2), at: 4)
        }
        return fields
    }
}
