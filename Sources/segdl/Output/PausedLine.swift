import SegmentedDownload

/// What a pause left of a download, and how to go on.
struct PausedLine: Hashable {
    let text: String

    init(_ path: String, _ progress: DownloadProgress) {
        let saved = try? SavedDownload(at: path)
        let total = progress.bytesTotal ?? saved?.bytesTotal
        let done = ByteCount(progress.bytesTotal == nil ? saved?.bytesDone ?? progress.bytesDone : progress.bytesDone)
        let amount = total.map { done.description(of: ByteCount($0)) } ?? "\(done)"
        let advice =
            if saved != nil {
                "Go on: segdl resume \(path.shellWord)"
            } else if total == nil, done.bytes > 0 {
                "It cannot be resumed, for the server does not say how long it is; the same command begins anew"
            } else {
                "Nothing was kept; the same command begins it"
            }
        self.text = "segdl: paused: \(path.shown), \(amount). \(advice)"
    }
}
