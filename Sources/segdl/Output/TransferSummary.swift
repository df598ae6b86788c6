import SegmentedDownload

/// How the files of a run ended: sums, and what failed. A list may have a million files, so that the others leave no more.
struct TransferSummary: Sendable {
    enum Outcome: Sendable {
        case completed(DownloadResult)
        case failed(DownloadError)
        case paused

        /// Absent for an event that ends nothing.
        init?(_ event: DownloadEvent) {
            switch event {
            case .completed(let result): self = .completed(result)
            case .failed(let error, _): self = .failed(error)
            case .paused: self = .paused
            case .cancelled: self = .failed(DownloadError(.internal, "the download was cancelled"))
            case .started, .state, .progress, .segment, .retrying, .checkpoint, .note: return nil
            }
        }
    }

    struct Failed: Sendable {
        /// Its place among the files.
        var number: Int
        var file: TransferFile
        var error: DownloadError
    }

    let filesCount: Int
    private(set) var completedCount = 0
    private(set) var bytes: Int64 = 0
    private(set) var bytesFetched: Int64 = 0
    private var failures: [Failed] = []
    /// The file, where there is only one and it has ended.
    private(set) var only: TransferFile?
    /// The signal that ended the run early.
    var signal: CInt?
    var duration: Duration = .zero

    init(filesCount: Int) {
        self.filesCount = filesCount
    }

    /// - Parameter number: the file's place among all.
    mutating func note(_ outcome: Outcome, of file: TransferFile, number: Int) {
        if self.filesCount == 1 { self.only = file }
        switch outcome {
        case .completed(let result):
            self.completedCount += 1
            self.bytes += result.bytes
            self.bytesFetched += result.bytesFetched
        case .failed(let error): self.failures.append(Failed(number: number, file: file, error: error))
        case .paused: break
        }
    }

    /// In the order of the files.
    var failed: [Failed] { self.failures.sorted { $0.number < $1.number } }

    /// Those whose turn never came are among them.
    var pausedCount: Int { self.filesCount - self.completedCount - self.failures.count }

    /// A signal that came too late to stop anything changes nothing.
    var exitCode: ExitCode {
        if self.pausedCount > 0 { return self.signal.map { ExitCode(signal: $0) } ?? .internal }
        guard let first = self.failures.first else { return .ok }
        return self.filesCount == 1 ? ExitCode(first.error) : .partial
    }
}
