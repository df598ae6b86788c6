import SegmentedDownload
import SegmentedDownloadCore

/// Prints the progress of a job, for `segdl status --job`.
struct JobReport {
    let path: String
    let json: Bool
    /// Whether the failed entries are printed, as a list.
    let failed: Bool

    /// - Returns: `ok` if every task has finished without a failure, otherwise `partial`.
    func run(now: Double, to output: LineSink) throws(DownloadError) -> ExitCode {
        let job = JobDirectory(self.path)
        let progress = JobProgress(try job.statuses(), now: now)
        guard !progress.tasks.isEmpty else {
            throw DownloadError(
                .state, "\(self.path.shown) has no records of a job",
                hint: "Give the directory that --job names, by default LIST.segdl-job")
        }
        let code: ExitCode = progress.isComplete ? .ok : .partial
        if self.failed {
            try job.failedEntries { output.send($0) }
        } else if self.json {
            output.send(JobRecord(progress, job: self.path).jsonLine + "\n")
            for task in progress.tasks { output.send(JobTaskRecord(task, of: progress).jsonLine + "\n") }
        } else {
            output.send("\(self.path.shown): \(progress.text)\n")
            for task in progress.tasks { if let text = progress.text(of: task) { output.send("  \(text)\n") } }
        }
        return code
    }
}
