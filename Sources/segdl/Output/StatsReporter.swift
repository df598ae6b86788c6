import SegmentedDownload
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Writes a run's figures to a file at its end.
final class StatsReporter: ProgressReporter {
    private let path: String
    private let console: Console
    private let figures = ProcessFigures.begin()
    private let sums = Mutex((requests: 0, connectionsPeak: 0))

    init(path: String, console: Console) {
        self.path = path
        self.console = console
    }

    func wants(_ event: DownloadEvent) -> Bool { false }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        guard case .completed(let result) = event else { return }
        self.sums.withLock { sums in
            sums.requests += result.requests
            sums.connectionsPeak = max(sums.connectionsPeak, result.connectionsPeak)
        }
    }

    func finish(_ summary: TransferSummary) {
        let sums = self.sums.withLock { $0 }
        let seconds = Seconds(summary.duration).rounded
        let (processor, peak) = self.figures.end()
        let record = StatsRecord(
            completed: summary.completedCount, failed: summary.failedCount, paused: summary.pausedCount,
            exit: summary.exitCode.rawValue, bytes: summary.bytes, bytesFetched: summary.bytesFetched, seconds: seconds,
            rate: seconds > 0 ? (Double(summary.bytesFetched) / seconds).rounded() : 0, requests: sums.requests,
            connectionsPeak: sums.connectionsPeak,
            cpuSeconds: processor.thousandths, memoryPeak: peak)
        if let number = self.write(record.jsonLine + "\n") {
            let why = number == ENXIO ? "no program reads from it" : String(cString: strerror(number))
            self.console.write("segdl: the figures were not written to \(self.path.shown): \(why)")
        }
    }

    /// One second, in milliseconds: how long to wait for the reader of a full pipe.
    private static let patience: CInt = 1000

    /// Returns the error number, or nil if everything is written. A pipe without a reader is an error (`ENXIO`), so
    /// that the run does not wait for one.
    private func write(_ text: String) -> CInt? {
        let descriptor = SystemCalls.openFile(
            self.path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0o666)
        guard descriptor >= 0 else { return errno }
        defer { SystemCalls.closeFile(descriptor) }
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { SystemCalls.writeBytes(descriptor, $0) }
            if count >= 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var descriptor = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                guard poll(&descriptor, 1, Self.patience) > 0 else { return EAGAIN }
            } else if errno != EINTR {
                return errno
            }
        }
        return nil
    }
}

extension Double {
    fileprivate var thousandths: Double { (self * 1000).rounded() / 1000 }
}

/// The figures of a run, as a flat JSON object. Files that are not complete are only counted.
struct StatsRecord: Encodable {
    let v = 1
    let completed: Int
    let failed: Int
    let paused: Int
    let exit: Int32
    let bytes: Int64
    let bytesFetched: Int64
    let seconds: Double
    /// Bytes fetched per second.
    let rate: Double
    let requests: Int
    let connectionsPeak: Int
    let cpuSeconds: Double
    /// The peak of the process's resident memory, in bytes.
    let memoryPeak: Int64?
}
