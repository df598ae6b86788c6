import SegmentedDownload

/// Files on a terminal: a line for each that is active, a map below it where maps are wanted and there is room, and one line for
/// all of them if there are many.
struct ProgressBoard {
    private struct Row {
        var name: String
        var progress = DownloadProgress()
        /// What it waits for, until bytes come.
        var remark: String?
        /// Where they stood when somebody looked.
        var segments: [SegmentStatus] = []
    }

    /// What ended leaves only sums behind: a list may have a million files.
    private struct Ended {
        var count = 0
        var failedCount = 0
        var bytes: Int64 = 0
    }

    /// Some terminals wrap as soon as the last column is written, and `^C` is echoed behind the line.
    private static let columnsFree = 3
    /// The line above that one typed, and one for what scrolls.
    private static let rowsFree = 2
    /// Narrower, the line for all says more if it need not stand under the others.
    private static let tableMin = 60
    /// Shorter ones do not tell files apart.
    private static let titleMin = 14
    /// Longer names leave no room for bars that tell something.
    private static let titleMax = 32
    /// The rows of a map: of the only file, where they are all there is to see, and of one of many.
    private static let mapRowsMax = (only: 4, others: 2)

    let filesCount: Int
    /// What maps look like; without it there are bars in their place.
    let palette: ProgressMap.Palette?
    private var rows: [Download.ID: Row] = [:]
    /// In the order they began, so that a line moves only up.
    private var order: [Download.ID] = []
    private var ended = Ended()

    init(filesCount: Int, palette: ProgressMap.Palette? = nil) {
        self.filesCount = filesCount
        self.palette = palette
    }

    mutating func take(_ event: DownloadEvent, of file: TransferFile) {
        // One that never became a download has failed.
        guard let id = file.id else { return self.end(nil, bytes: 0, isFailure: true) }
        switch event {
        case .started(let start):
            self.update(id, file) { row in
                row.name = start.path.lastPathComponent.shown
                row.remark = nil
                row.progress.bytesTotal = start.bytesTotal
                row.progress.bytesDone = start.resumedFrom
            }
        case .progress(let progress):
            self.update(id, file) { row in
                row.name = file.name
                // While other connections go on, one that is made again is no news.
                if progress.connections > 0 { row.remark = nil }
                row.progress = progress
            }
        case .retrying(let error, let attempt, let delay):
            self.update(id, file) { row in
                if row.progress.connections == 0 {
                    row.remark = "retry \(attempt) in \(Seconds(delay)): \(error.message)"
                }
            }
        case .completed(let result): self.end(id, bytes: result.bytes)
        case .failed, .cancelled: self.end(id, bytes: self.rows[id]?.progress.bytesDone ?? 0, isFailure: true)
        case .paused(let progress): self.end(id, bytes: progress.bytesDone)
        case .segment, .checkpoint, .note, .state: break
        }
    }

    /// The only file is about to be fetched, and nothing is known of it yet.
    mutating func connect(_ file: TransferFile) {
        if let id = file.id { self.update(id, file) { $0.remark = "connecting" } }
    }

    /// A look at a file's segments. There are none to be seen for a moment when they are settled: then it stands as before.
    mutating func note(_ segments: [SegmentStatus], of id: Download.ID) {
        if !segments.isEmpty { self.rows[id]?.segments = segments }
    }

    private mutating func update(_ id: Download.ID, _ file: TransferFile, _ body: (inout Row) -> Void) {
        if self.rows[id] == nil { self.order.append(id) }
        body(&self.rows[id, default: Row(name: file.name)])
    }

    private mutating func end(_ id: Download.ID?, bytes: Int64, isFailure: Bool = false) {
        if let id, self.rows.removeValue(forKey: id) != nil { self.order.removeAll { $0 == id } }
        self.ended.count += 1
        self.ended.failedCount += isFailure ? 1 : 0
        self.ended.bytes += bytes
    }

    /// The files whose maps are seen on a terminal of that size.
    func mapped(_ size: Terminal.Size) -> [Download.ID] { self.mapRows(self.room(size)) > 0 ? self.order : [] }

    /// The lines for a terminal of that size, the one for all files last; none once all have ended.
    func lines(_ size: Terminal.Size) -> [String] {
        guard self.ended.count < self.filesCount else { return [] }
        let width = max(size.columns - Self.columnsFree, 1)
        let room = self.room(size)
        // Those that do not fit are counted, in a line that takes the place of one more.
        let shown = self.order.count <= room ? self.order.count : max(room - 1, 0)
        let rows = self.order.prefix(shown).compactMap { self.rows[$0] }
        let mapRows = self.mapRows(room)
        let bars = rows.map { self.bar($0, hasMap: mapRows > 0) }
        let total = self.total
        let titleWidth = max(min(bars.map(\.title.columns).max() ?? 0, Self.titleMax), total.title.columns)
        var lines: [String] = []
        for (row, bar) in zip(rows, bars) {
            lines.append(bar.line(width: width, titleWidth: self.hasTotal ? titleWidth : nil))
            lines += self.map(row, columns: width, rows: mapRows)
        }
        let hidden = self.order.count - shown
        if hidden > 0, room > 0 { lines.append("… and \(hidden) more".clipped(to: width)) }
        guard self.hasTotal else { return lines }
        return lines + [total.line(width: width, titleWidth: width < Self.tableMin ? nil : titleWidth)]
    }

    /// Whether there is a line for all files: the only one has its own.
    private var hasTotal: Bool { self.filesCount > 1 }

    /// The lines that are left to files.
    private func room(_ size: Terminal.Size) -> Int {
        self.hasTotal ? max(size.rows - Self.rowsFree - 1, 0) : max(size.rows - Self.rowsFree, 1)
    }

    private func bar(_ row: Row, hasMap: Bool) -> ProgressBar {
        var bar = ProgressBar(title: row.name, progress: row.progress)
        if self.hasTotal { bar.titleMin = Self.titleMin }
        bar.remark = row.remark
        bar.hasBar = !hasMap
        return bar
    }

    // MARK: Maps

    /// How many rows every map may have; none where there is no room for one of each file.
    private func mapRows(_ room: Int) -> Int {
        guard self.palette != nil, !self.order.isEmpty else { return 0 }
        return min(max(room / self.order.count - 1, 0), self.hasTotal ? Self.mapRowsMax.others : Self.mapRowsMax.only)
    }

    /// None where the length is not known.
    private func map(_ row: Row, columns: Int, rows: Int) -> [String] {
        // Segments cover the file, so that their end is its length.
        guard rows > 0, let palette = self.palette, let length = row.segments.last?.end else { return [] }
        return ProgressMap(row.segments, completeLength: length, columns: columns, rows: rows).lines(palette)
    }

    private var total: ProgressBar {
        var sum = DownloadProgress()
        sum.bytesDone = self.ended.bytes
        // Files that wait for their turn have lengths that nobody knows yet.
        sum.bytesTotal = self.ended.count + self.order.count == self.filesCount ? self.ended.bytes : nil
        for row in self.rows.values {
            sum.bytesDone += row.progress.bytesDone
            sum.bytesTotal = sum.bytesTotal.flatMap { total in row.progress.bytesTotal.map { total + $0 } }
            sum.rate = row.progress.rate.map { (sum.rate ?? 0) + $0 } ?? sum.rate
            sum.connections += row.progress.connections
        }
        var title = "\(self.ended.count)/\(self.filesCount) files"
        if self.ended.failedCount > 0 { title += ", \(self.ended.failedCount) failed" }
        return ProgressBar(title: title, progress: sum, titleMin: title.columns)
    }
}
