import SegmentedDownload

/// How the files of a run ended.
struct TransferSummary: Sendable {
    enum Outcome: Sendable {
        case completed(DownloadResult)
        case failed(DownloadError)
        case paused
    }

    var files: [(file: TransferFile, outcome: Outcome)] = []
    /// The signal that ended the run early.
    var signal: CInt?
    var duration: Duration = .zero

    var completed: [DownloadResult] {
        self.files.compactMap { if case .completed(let result) = $0.outcome { result } else { nil } }
    }

    var failed: [(file: TransferFile, error: DownloadError)] {
        self.files.compactMap { file, outcome in
            if case .failed(let error) = outcome { (file, error) } else { nil }
        }
    }

    var pausedCount: Int { self.files.count - self.completed.count - self.failed.count }

    var bytes: Int64 { self.completed.reduce(0) { $0 + $1.bytes } }

    /// A signal that came too late to stop anything changes nothing.
    var exitCode: ExitCode {
        if self.pausedCount > 0 { return self.signal.map { ExitCode(signal: $0) } ?? .internal }
        guard let first = self.failed.first else { return .ok }
        return self.files.count == 1 ? ExitCode(first.error.code) : .partial
    }
}
