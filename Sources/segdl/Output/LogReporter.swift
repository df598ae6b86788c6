import SegmentedDownload
import Synchronization

/// Writes progress as lines for a log.
final class LogReporter: ProgressReporter {
    private struct Entry {
        var reportedAt: Duration
        var step: Int
    }

    /// The minimum time between two lines about one file.
    private static let intervalMin: Duration = .seconds(5)
    /// The maximum time between two lines about a slow file.
    private static let intervalMax: Duration = .seconds(60)

    private let console: Console
    private let elapsed: @Sendable () -> Duration
    private let entries = Mutex<[Download.ID: Entry]>([:])

    init(console: Console, elapsed: @escaping @Sendable () -> Duration) {
        self.console = console
        self.elapsed = elapsed
    }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        guard let id = file.id else { return }
        switch event {
        case .started(let start):
            let entry = Entry(reportedAt: self.elapsed(), step: Self.step(start.resumedFrom, of: start.bytesTotal))
            self.entries.withLock { $0[id] = entry }
            self.console.write(Self.line(start))
        case .progress(let progress):
            if self.isDue(progress, id: id) { self.console.write("\(file.path.shown): \(ProgressText(progress).line)") }
        case .segment, .retrying, .checkpoint, .note, .state, .paused, .completed, .failed, .cancelled:
            break
        }
    }

    private func isDue(_ progress: DownloadProgress, id: Download.ID) -> Bool {
        let now = self.elapsed()
        let step = Self.step(progress.bytesDone, of: progress.bytesTotal)
        return self.entries.withLock { entries in
            guard let entry = entries[id] else { return false }
            let interval = now - entry.reportedAt
            let isDue = interval >= Self.intervalMax || (interval >= Self.intervalMin && step > entry.step)
            guard isDue else { return false }
            entries[id] = Entry(reportedAt: now, step: step)
            return true
        }
    }

    /// The completed tenths of the file.
    private static func step(_ done: Int64, of total: Int64?) -> Int {
        guard let total, total > 0 else { return 0 }
        return Int(Double(done) / Double(total) * 10)
    }

    private static func line(_ start: DownloadEvent.Started) -> String {
        var parts = [start.bytesTotal.map { "\(ByteCount($0))" } ?? "length unknown"]
        if start.resumedFrom > 0 { parts.append("resumed at \(ByteCount(start.resumedFrom))") }
        return "\(start.path.string.shown): \(parts.joined(separator: ", ")), from \(start.url)"
    }
}
