import SegmentedDownload

/// Writes messages about files, depending on the verbosity.
struct MessageReporter: ProgressReporter {
    let console: Console
    let verbosity: OutputOptions.Verbosity
    /// Whether there is only one file.
    let isAlone: Bool

    func report(_ event: DownloadEvent, of file: TransferFile) {
        switch event {
        case .completed(let result):
            self.write(Self.completed(result), at: .normal)
        case .failed(let error, _):
            if !error.isBrokenPipe { self.console.write(FailureLine(error, of: file.path).text) }
        case .paused(let progress):
            // Files that never started are only counted at the end: there may be a million.
            guard self.isAlone || progress.bytesDone > 0 else { return }
            self.write(PausedLine(file.path, progress).text, at: .quiet)
        case .cancelled:
            self.write("segdl: cancelled: \(file.path.shown)", at: .normal)
        case .retrying(let error, let attempt, let delay):
            self.write("\(file.path.shown): retry \(attempt) in \(Seconds(delay)): \(error.message)", at: .verbose)
        case .note(let text):
            self.write("\(file.path.shown): note: \(text)", at: .normal)
        case .segment(let change):
            let end = change.end.map { "\($0)" } ?? ""
            let range = "\(change.start)..<\(end)"
            let line = "\(file.path.shown): segment \(change.segment) \(change.state.rawValue), bytes \(range)"
            self.write(line, at: .verbose)
        case .started, .progress, .checkpoint, .state:
            break
        }
    }

    func finish(_ summary: TransferSummary) {
        guard summary.filesCount > 1 else { return }
        let failed = summary.failed
        // The line printed when a file failed may have scrolled away, so every failed file is listed again.
        for entry in failed {
            self.console.write("segdl: failed: \(entry.file.path.shown) (\(entry.error.code.rawValue))")
        }
        if !failed.isEmpty || summary.pausedCount > 0 {
            var counts = "\(summary.completedCount) of \(summary.filesCount) files complete"
            if !failed.isEmpty { counts += ", \(failed.count) failed" }
            if summary.pausedCount > 0 { counts += ", \(summary.pausedCount) paused" }
            let hint = "Run the same command again to fetch the rest"
            self.console.write(
                summary.pausedCount > 0
                    ? "segdl: \(counts). \(hint)" : FailureLine(.partial, counts, hint: hint).text)
        } else {
            let rate = Self.rate(summary.bytesFetched, in: summary.duration)
            self.write(
                "\(summary.filesCount) files: \(ByteCount(summary.bytes)) in \(Seconds(summary.duration))\(rate)",
                at: .normal)
        }
    }

    private func write(_ line: String, at verbosity: OutputOptions.Verbosity) {
        if self.verbosity >= verbosity { self.console.write(line) }
    }

    /// `file.iso: 1.0 GiB in 0.7 s (1.5 GiB/s), 4 connections, verified by etag, crc32 1234abcd`
    static func completed(_ result: DownloadResult) -> String {
        let name = result.path.string.shown
        let proof = Self.proof(result)
        if result.wasAlreadyComplete {
            return "\(name): already complete (\(proof)), nothing fetched"
        }
        var size = "\(ByteCount(result.bytes))"
        // More bytes than the length come from overlapping segments and are not reported.
        if result.bytesFetched < result.bytes { size += " (\(ByteCount(result.bytesFetched)) fetched)" }
        let rate = Self.rate(result.bytesFetched, in: result.duration)
        var parts = ["\(size) in \(Seconds(result.duration))\(rate)"]
        parts.append(result.connectionsPeak == 1 ? "1 connection" : "\(result.connectionsPeak) connections")
        parts.append(proof)
        if let crc32 = result.crc32 { parts.append("crc32 \(crc32)") }
        return "\(name): \(parts.joined(separator: ", "))"
    }

    private static func proof(_ result: DownloadResult) -> String {
        switch result.verifiedBy {
        case .digest: "verified by \(result.digests.map(\.algorithm.rawValue).joined(separator: " and "))"
        case .etag: "verified by etag"
        case .lastModified: "verified by last-modified"
        case .comparison: "verified by comparing parts of it"
        case .none: "not verified"
        }
    }

    /// The rate in parentheses; empty if there are no bytes or less than a millisecond passed.
    private static func rate(_ bytes: Int64, in duration: Duration) -> String {
        let seconds = Seconds(duration).value
        guard bytes > 0, seconds >= 0.001 else { return "" }
        return " (\(ByteCount(Int64(Double(bytes) / seconds)))/s)"
    }
}
