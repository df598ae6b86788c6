import SegmentedDownload

/// A progress as text. Unknown values are left out.
struct ProgressText: Hashable {
    let percent: String?
    /// `3.10 of 4.00 GiB`
    let amount: String
    let rate: String?
    let timeLeft: Duration?
    let connections: Int

    init(_ progress: DownloadProgress, separator: String = " of ") {
        let done = ByteCount(progress.bytesDone)
        // Rounded down, so that 100 % means complete.
        self.percent = progress.fraction.map { "\(Int(min(max($0, 0), 1) * 100))%" }
        self.amount = progress.bytesTotal.map { done.description(of: ByteCount($0), separator: separator) } ?? "\(done)"
        self.rate = progress.rate.map { ByteCount.perSecond($0) }
        self.timeLeft = progress.timeLeft
        self.connections = progress.connections
    }

    /// `42%, 1.71 of 4.00 GiB, 120 MiB/s, 22 s left, 4 connections`
    var line: String {
        let parts: [String?] = [
            self.percent, self.amount, self.rate, self.timeLeft.map { "\(Seconds($0)) left" },
            self.connections == 1 ? "1 connection" : "\(self.connections) connections",
        ]
        return parts.compactMap { $0 }.joined(separator: ", ")
    }
}
