import SegmentedDownload

/// A failure in one line: a stable word, the facts, the consequence, the remedy.
struct FailureLine: Hashable {
    let text: String

    init(_ code: ExitCode, _ message: String, of path: String? = nil, kept: Int64 = 0, hint: String? = nil) {
        var sentences = [message]
        if let name = path?.shown {
            // Messages of the file system name the file already.
            if !message.hasPrefix(name) { sentences = ["\(name): \(message)"] }
            // A hint may say so already.
            if kept > 0, hint?.contains("\(name).segdl-part") != true {
                sentences.append("Kept \(ByteCount(kept)) in \(name).segdl-part")
            }
        }
        if let hint { sentences.append(hint) }
        let body = sentences.map { ".?!".contains($0.last ?? ".") ? $0 : "\($0)." }.joined(separator: " ")
        self.text = "segdl: error[\(code.word)]: \(body)"
    }

    /// - Parameter path: the destination, absent if the failure is about none.
    init(_ error: DownloadError, of path: String?) {
        // What another process or program has is not ours to count.
        let saved = error.code == .exists ? nil : path.flatMap { try? SavedDownload(at: $0) }
        self.init(
            ExitCode(error.code), error.message, of: path, kept: saved?.bytesDone ?? 0, hint: error.hint)
    }
}
