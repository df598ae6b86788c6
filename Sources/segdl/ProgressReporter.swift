import SegmentedDownload

/// One of the files that a run is about.
struct TransferFile: Hashable, Sendable {
    /// The download's name within the run, absent if it never became a download.
    var id: Download.ID?
    /// The destination, as far as it is known.
    var path: String

    /// The file's name, safe to show.
    var name: String { self.path.lastPathComponent.shown }
}

/// Tells someone how the files of a run are doing. Called from many tasks.
protocol ProgressReporter: Sendable {
    /// These are fetched, as far as their turn has come.
    func begin(_ files: [TransferFile])
    func report(_ event: DownloadEvent, of file: TransferFile)
    /// The terminal changed.
    func redraw()
    /// Nothing follows.
    func finish(_ summary: TransferSummary)
}

extension ProgressReporter {
    func begin(_ files: [TransferFile]) {}
    func redraw() {}
    func finish(_ summary: TransferSummary) {}
}
