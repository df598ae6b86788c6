import SegmentedDownload

/// Writes every event as a line of JSON.
struct EventWriter: ProgressReporter {
    let sink: LineSink
    let elapsed: @Sendable () -> Duration

    func report(_ event: DownloadEvent, of file: TransferFile) {
        let line = EventRecord(event, of: file, time: self.elapsed()).jsonLine
        self.sink.send(line + "\n", isSpare: Self.isSpare(event))
    }

    func finish(_ summary: TransferSummary) {
        self.sink.send(EventRecord(summary).jsonLine + "\n")
    }

    /// Whether an event may be dropped if the reader is slow.
    private static func isSpare(_ event: DownloadEvent) -> Bool {
        switch event {
        case .progress, .segment, .retrying, .checkpoint, .note, .state: true
        case .started, .paused, .completed, .failed, .cancelled: false
        }
    }
}
