import SegmentedDownload

/// A failure in one line: a stable word, the facts, the consequence, the remedy.
struct FailureLine: Hashable {
    let text: String

    init(_ code: ExitCode, _ message: String, of path: String? = nil, kept: Int64 = 0, hint: String? = nil) {
        var sentences = [message]
        if let name = path?.shownWithoutSecrets {
            // Messages of the file system already begin with the name.
            if !message.hasPrefix(name) { sentences = ["\(name): \(message)"] }
            // The hint may already name the part.
            if kept > 0, hint?.contains("\(name).segdl-part") != true {
                sentences.append("Kept \(ByteCount(kept)) in \(name).segdl-part")
            }
        }
        if let hint { sentences.append(hint) }
        let body = sentences.map { ".?!".contains($0.last ?? ".") ? $0 : "\($0)." }.joined(separator: " ")
        self.text = "segdl: error[\(code.word)]: \(body)"
    }

    /// - Parameter path: The destination; nil if the failure does not concern a file.
    init(_ error: DownloadError, of path: String?) {
        // With `exists`, the part may belong to another process or program.
        let isTask = path.map { SharedFile.containsTask($0) } ?? false
        // The part of a task is in the shared file.
        let saved = error.code == .exists || isTask ? nil : path.flatMap { try? SavedDownload(reading: $0) }
        let kept = saved?.bytesDone ?? 0
        self.init(
            ExitCode(error.code), error.message, of: path, kept: kept,
            hint: error.commandLineAdvice ?? (isTask ? "To resume: the same command" : nil)
                ?? Self.advice(
                    for: error.code,
                    again: path.flatMap { path in
                        kept > 0 ? saved.map { ResumeAdvice($0, at: path).text } : nil
                    }))
    }

    /// The default hint, for failures that have neither a hint nor a remedy.
    ///
    /// - Parameter again: How to resume, if bytes are kept.
    private static func advice(for code: DownloadError.Code, again: String?) -> String {
        switch code {
        case .network, .server, .tls, .auth: again ?? "Check the URL, or try again later"
        case .protocol: again ?? "Try again, or fetch it from another server"
        case .file: "Correct the cause, then run the same command again"
        case .space: "Free some space or allow more, then run the same command again"
        case .integrity: "Start over with --continue no"
        case .changed: "Start over with --on-change restart"
        case .policy, .usage: "See segdl --help"
        case .exists: "Choose another name with -o"
        case .state: "Start over with --continue auto"
        default: "Please report this bug"  // Only a bug shows `internal`, `cancelled` or an unknown code.
        }
    }
}
