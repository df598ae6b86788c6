import SegmentedDownload

extension EventRecord {
    /// The record of a download's event.
    init(_ event: DownloadEvent, of file: TransferFile, time: Duration) {
        switch event {
        case .started(let start):
            self.init("started", id: file.id, time: time)
            self.url = start.url
            self.path = start.path.string
            self.bytesTotal = start.bytesTotal
            self.resumedFrom = start.resumedFrom
            self.segmented = start.isSegmented
            self.validator = start.validator
            self.set(file.userInfo)
        case .progress(let progress):
            self.init("progress", id: file.id, time: time)
            self.set(progress)
            self.rate = progress.rate.map { Int64(min(max($0, 0), 1e18)) }
            self.eta = progress.timeLeft.map { Seconds($0).rounded }
            self.connections = progress.connections
            self.state = file.state?.rawValue
        case .segment(let change):
            self.init("segment", id: file.id, time: time)
            self.segment = change.segment
            self.start = change.start
            self.end = change.end
            self.state = change.state.rawValue
            self.source = change.source
        case .retrying(let error, let attempt, let delay):
            self.init("retry", id: file.id, time: time)
            self.reason = error.message
            self.code = error.code.rawValue
            self.status = error.status
            self.attempt = attempt
            self.delay = Seconds(delay).rounded
        case .checkpoint(let bytesDurable):
            self.init("checkpoint", id: file.id, time: time)
            self.bytesDurable = bytesDurable
        case .note(let text):
            self.init("note", id: file.id, time: time)
            self.message = text
        case .state(let state):
            self.init("state", id: file.id, time: time)
            self.state = state.rawValue
        case .paused(let progress):
            self.init("paused", id: file.id, time: time)
            self.path = file.path
            self.set(progress)
        case .completed(let result):
            self.init("completed", id: file.id, time: time)
            self.url = file.url
            self.set(result)
            self.set(file.userInfo)
        case .failed(let error, let progress):
            self.init("failed", id: file.id, time: time)
            self.url = file.url
            self.path = file.path
            self.bytesDone = progress.bytesDone
            self.set(error)
            self.set(file.userInfo)
        case .cancelled:
            self.init("cancelled", id: file.id, time: time)
            self.url = file.url
            self.path = file.path
            self.set(file.userInfo)
        }
    }

    init(_ summary: TransferSummary) {
        self.init("all_completed", time: summary.duration)
        self.completed = summary.completedCount
        self.failed = summary.failedCount
        self.paused = summary.pausedCount
        self.bytes = summary.bytes
        self.seconds = Seconds(summary.duration).rounded
        self.exit = summary.exitCode.rawValue
    }

    private mutating func set(_ userInfo: [String: String]) {
        self.userInfo = userInfo.isEmpty ? nil : userInfo
    }

    private mutating func set(_ progress: DownloadProgress) {
        self.bytesDone = progress.bytesDone
        self.bytesTotal = progress.bytesTotal
    }

    private mutating func set(_ result: DownloadResult) {
        self.path = result.path.string
        self.bytes = result.bytes
        self.bytesFetched = result.bytesFetched
        self.requests = result.requests
        self.connectionsPeak = result.connectionsPeak
        self.seconds = Seconds(result.duration).rounded
        self.crc32 = result.crc32
        self.digests = result.digests.map(\.description)
        self.verifiedBy = result.verifiedBy.rawValue
        self.alreadyComplete = result.wasAlreadyComplete
    }

    private mutating func set(_ error: DownloadError) {
        self.code = error.code.rawValue
        self.exit = ExitCode(error.code).rawValue
        self.message = error.message
        self.status = error.status
        self.errno = error.errno
        self.resumable = error.isResumable
        self.hint = error.commandLineAdvice
    }
}
