import SegmentedDownload

/// The progress of files on a terminal.
///
/// Each active file has a line, and a map below it if maps are requested and there is room. Several files also have a
/// line for all of them. Times are since the start of the run.
struct ProgressBoard {
    private struct Row {
        var name: String
        var startedAt: Duration
        var progress = DownloadProgress()
        var figures = SteadyFigures()
        /// What the file waits for; nil once bytes arrive.
        var waiting: Waiting?
        /// The segments at the last tick.
        var segments: [SegmentStatus] = []
    }

    private enum Waiting {
        case connection
        case retry(attempt: Int, at: Duration, message: String)

        func text(at now: Duration) -> String {
            switch self {
            case .connection: "connecting"
            case .retry(let attempt, let time, let message):
                "retry \(attempt)\(time > now ? " in \(Seconds(time - now).clock)" : ""): \(message)"
            }
        }
    }

    /// Sums of the files that ended. Their rows are not stored, because a list may have a million files.
    private struct Ended {
        var count = 0
        var failedCount = 0
        var bytes: Int64 = 0
    }

    /// Some terminals wrap as soon as the last column is written, and `^C` is echoed after the line.
    private static let columnsFree = 3
    /// One row for the command above, and one for messages.
    private static let rowsFree = 2
    /// On a narrower terminal, the table lacks fields that the line for all files has if it is not aligned.
    private static let alignedMin = 110
    /// Shorter titles do not distinguish files.
    private static let titleMin = 14
    /// Longer titles leave no room for a useful bar.
    private static let titleMax = 32
    /// The maximum rows of a map: for a single file, and for each of several files.
    private static let mapRowsMax = (only: 4, others: 2)

    /// Nil if it is unknown until the last file is given.
    let filesCount: Int?
    /// The palette of maps; nil to draw bars.
    let palette: ProgressMap.Palette?
    private var rows: [Download.ID: Row] = [:]
    /// In the order in which the files started, so that a line only moves up.
    private var order: [Download.ID] = []
    private var ended = Ended()
    /// The bytes of all files that arrived in this run.
    private var bytesFetched: Int64 = 0
    private var figures = SteadyFigures()

    init(filesCount: Int?, palette: ProgressMap.Palette? = nil) {
        self.filesCount = filesCount
        self.palette = palette
    }

    mutating func take(_ event: DownloadEvent, of file: TransferFile, at now: Duration) {
        // A file without a download has failed.
        guard let id = file.id else { return self.end(nil, bytes: 0, isFailure: true) }
        switch event {
        case .started(let start):
            self.update(id, file, at: now) { row in
                row.name = start.path.string.lastPathComponent.shown
                row.waiting = nil
                row.progress.bytesTotal = start.bytesTotal
                row.progress.bytesDone = start.resumedFrom
                // The bytes that were kept do not count toward the rate.
                row.figures = SteadyFigures()
            }
        case .progress(let progress):
            if let before = self.rows[id]?.progress { self.countFetched(progress.bytesDone - before.bytesDone) }
            self.update(id, file, at: now) { row in
                row.name = file.name
                // A retry is not worth showing while other connections receive bytes.
                if progress.connections > 0 { row.waiting = nil }
                row.progress = progress
            }
        case .retrying(let error, let attempt, let delay):
            self.update(id, file, at: now) { row in
                if row.progress.connections == 0 {
                    row.waiting = .retry(attempt: attempt, at: now + delay, message: error.message)
                }
            }
        case .completed(let result):
            // A short file may complete before its first progress.
            if let before = self.rows[id]?.progress { self.countFetched(result.bytes - before.bytesDone) }
            self.end(id, bytes: result.bytes)
        case .failed, .cancelled: self.end(id, bytes: self.rows[id]?.progress.bytesDone ?? 0, isFailure: true)
        case .paused(let progress): self.end(id, bytes: progress.bytesDone)
        case .segment, .checkpoint, .note, .state: break
        }
    }

    /// Adds a line for the only file before its first event.
    mutating func connect(_ file: TransferFile, at now: Duration) {
        if let id = file.id { self.update(id, file, at: now) { $0.waiting = .connection } }
    }

    /// Stores a file's segments. They are empty for a moment when the file is complete; the row then stays unchanged.
    mutating func note(_ segments: [SegmentStatus], of id: Download.ID) {
        if !segments.isEmpty { self.rows[id]?.segments = segments }
    }

    /// Updates the rates and the numbers of connections. Called about ten times a second.
    mutating func tick(at now: Duration) {
        var connections = 0
        for id in self.order {
            guard let progress = self.rows[id]?.progress else { continue }
            self.rows[id]?.figures.record(bytes: progress.bytesDone, connections: progress.connections, at: now)
            connections += progress.connections
        }
        self.figures.record(bytes: self.bytesFetched, connections: connections, at: now)
    }

    private mutating func countFetched(_ bytes: Int64) { self.bytesFetched += max(bytes, 0) }

    private mutating func update(
        _ id: Download.ID, _ file: TransferFile, at now: Duration, _ body: (inout Row) -> Void
    ) {
        if self.rows[id] == nil { self.order.append(id) }
        body(&self.rows[id, default: Row(name: file.name, startedAt: now)])
    }

    private mutating func end(_ id: Download.ID?, bytes: Int64, isFailure: Bool = false) {
        if let id, self.rows.removeValue(forKey: id) != nil { self.order.removeAll { $0 == id } }
        self.ended.count += 1
        self.ended.failedCount += isFailure ? 1 : 0
        self.ended.bytes += bytes
    }

    /// The files whose maps are visible on a terminal of this size.
    func mapped(_ size: Terminal.Size) -> [Download.ID] { self.mapRows(self.room(size)) > 0 ? self.order : [] }

    /// The lines for a terminal of this size. The line for all files is last. Empty when all files have ended.
    func lines(_ size: Terminal.Size, at now: Duration) -> [String] {
        guard self.filesCount.map({ self.ended.count < $0 }) ?? true else { return [] }
        let width = max(size.columns - Self.columnsFree, 1)
        let room = self.room(size)
        // Files that do not fit are counted in a line that replaces one more file.
        let shown = self.order.count <= room ? self.order.count : max(room - 1, 0)
        let rows = self.order.prefix(shown).compactMap { self.rows[$0] }
        let mapRows = self.mapRows(room)
        let bars = rows.map { self.bar($0, hasMap: mapRows > 0, at: now) }
        let total = self.total(at: now)
        let titleWidth = max(min(bars.map(\.title.columns).max() ?? 0, Self.titleMax), total.title.columns)
        var lines: [String] = []
        for (row, bar) in zip(rows, bars) {
            lines.append(bar.line(width: width, titleWidth: self.hasTotal ? titleWidth : nil))
            lines += self.map(row, columns: width, rows: mapRows)
        }
        let hidden = self.order.count - shown
        if hidden > 0, room > 0 { lines.append("… and \(hidden) more".clipped(to: width)) }
        guard self.hasTotal else { return lines }
        let isAligned = width >= Self.alignedMin && mapRows == 0
        return lines + [total.line(width: width, titleWidth: isAligned ? titleWidth : nil)]
    }

    /// Whether there is a line for all files.
    private var hasTotal: Bool { self.filesCount.map { $0 > 1 } ?? true }

    /// The rows available for files.
    private func room(_ size: Terminal.Size) -> Int {
        self.hasTotal ? max(size.rows - Self.rowsFree - 1, 0) : max(size.rows - Self.rowsFree, 1)
    }

    private func bar(_ row: Row, hasMap: Bool, at now: Duration) -> ProgressBar {
        var progress = row.progress
        progress.rate = row.figures.rate
        progress.connections = row.figures.connections
        var bar = ProgressBar(title: row.name, progress: progress, elapsed: now - row.startedAt)
        if self.hasTotal { bar.titleMin = Self.titleMin }
        bar.remark = row.waiting?.text(at: now)
        bar.hasBar = !hasMap
        return bar
    }

    private func total(at now: Duration) -> ProgressBar {
        var sum = DownloadProgress()
        sum.bytesDone = self.ended.bytes
        // The total is unknown while files are queued, because their lengths are unknown.
        sum.bytesTotal = self.ended.count + self.order.count == self.filesCount ? self.ended.bytes : nil
        for row in self.rows.values {
            sum.bytesDone += row.progress.bytesDone
            sum.bytesTotal = sum.bytesTotal.flatMap { total in row.progress.bytesTotal.map { total + $0 } }
        }
        sum.rate = self.figures.rate
        sum.connections = self.figures.connections
        var title = "\(self.ended.count)\(self.filesCount.map { "/\($0)" } ?? "") files"
        if self.ended.failedCount > 0 { title += ", \(self.ended.failedCount) failed" }
        return ProgressBar(title: title, progress: sum, elapsed: now, titleMin: title.columns)
    }

    // MARK: Maps

    /// The number of rows for each map; 0 if there is no room for a map of every file.
    private func mapRows(_ room: Int) -> Int {
        guard self.palette != nil, !self.order.isEmpty else { return 0 }
        return min(max(room / self.order.count - 1, 0), self.hasTotal ? Self.mapRowsMax.others : Self.mapRowsMax.only)
    }

    /// The lines of a map; empty if the length is unknown.
    private func map(_ row: Row, columns: Int, rows: Int) -> [String] {
        // Segments cover the file, so the last one ends at its length.
        guard rows > 0, let palette = self.palette, let length = row.segments.last?.end else { return [] }
        return ProgressMap(row.segments, completeLength: length, columns: columns, rows: rows).lines(palette)
    }
}
