import SegmentedDownload

/// The message about a paused download: its progress and the command that resumes it.
struct PausedLine: Hashable {
    let text: String

    init(_ path: String, _ progress: DownloadProgress) {
        let saved = try? SavedDownload(reading: path)
        let total = progress.bytesTotal ?? saved?.bytesTotal
        let done = ByteCount(progress.bytesTotal == nil ? saved?.bytesDone ?? progress.bytesDone : progress.bytesDone)
        let amount = total.map { done.description(of: ByteCount($0)) } ?? "\(done)"
        let advice =
            if saved != nil {
                "To resume: segdl resume \(path.shellWord)"
            } else if total == nil, done.bytes > 0 {
                "It cannot be resumed because its length is unknown; the same command starts over"
            } else {
                "Nothing was kept; the same command starts over"
            }
        self.text = "segdl: paused: \(path.shown), \(amount). \(advice)"
    }
}
