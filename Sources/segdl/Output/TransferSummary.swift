import SegmentedDownload

/// How the files of a run ended: sums, and the files that failed.
///
/// Other files are not stored, because a list may have a million.
struct TransferSummary: Sendable {
    enum Outcome: Sendable {
        case completed(DownloadResult)
        case failed(DownloadError)
        case paused

        /// Nil if the event is not a final one.
        init?(_ event: DownloadEvent) {
            switch event {
            case .completed(let result): self = .completed(result)
            case .failed(let error, _): self = .failed(error)
            case .paused: self = .paused
            case .cancelled: self = .failed(DownloadError(.cancelled, "the download was cancelled"))
            case .started, .state, .progress, .segment, .retrying, .checkpoint, .note: return nil
            }
        }
    }

    struct Failed: Sendable {
        /// The file's place in the run.
        var number: Int
        var file: TransferFile
        var error: DownloadError
    }

    /// 1000: of a list with millions of entries, the run names no more failed files. All are in the job's records.
    private static let failuresListedMax = 1000

    /// The number of files, or of those given so far.
    private(set) var filesCount: Int
    /// Whether files are counted when they are given, because their number is not known before.
    private let countsFiles: Bool
    /// Whether the run ended before all files were given.
    var hasRest = false
    private(set) var completedCount = 0
    private(set) var bytes: Int64 = 0
    private(set) var bytesFetched: Int64 = 0
    private(set) var failedCount = 0
    private var failures: [Failed] = []
    /// The file, if there is only one and it has ended.
    private(set) var only: TransferFile?
    /// The signal that ended the run early.
    var signal: CInt?
    var duration: Duration = .zero

    /// - Parameter filesCount: Nil if it is unknown until the last file is given.
    init(filesCount: Int?) {
        self.filesCount = filesCount ?? 0
        self.countsFiles = filesCount == nil
    }

    /// Counts a file that is given.
    mutating func begin() {
        if self.countsFiles { self.filesCount += 1 }
    }

    /// - Parameter number: The file's place in the run.
    mutating func note(_ outcome: Outcome, of file: TransferFile, number: Int) {
        if self.filesCount == 1, !self.countsFiles { self.only = file }
        switch outcome {
        case .completed(let result):
            self.completedCount += 1
            self.bytes += result.bytes
            self.bytesFetched += result.bytesFetched
        case .failed(let error):
            self.failedCount += 1
            guard !self.countsFiles || self.failures.count < Self.failuresListedMax else { return }
            self.failures.append(Failed(number: number, file: file, error: error))
        case .paused: break
        }
    }

    /// In the order of the files. If their number was unknown, not all.
    var failed: [Failed] { self.failures.sorted { $0.number < $1.number } }

    /// The number of paused files, including those that never started.
    var pausedCount: Int { self.filesCount - self.completedCount - self.failedCount }

    /// The exit status. A signal counts only if it paused a file.
    var exitCode: ExitCode {
        if self.pausedCount > 0 || self.hasRest { return self.signal.map { ExitCode(signal: $0) } ?? .internal }
        guard let first = self.failures.first else { return .ok }
        return self.filesCount == 1 && !self.countsFiles ? ExitCode(first.error) : .partial
    }
}
