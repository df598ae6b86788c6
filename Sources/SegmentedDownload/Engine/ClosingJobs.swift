import SegmentedDownloadCore

/// The downloads that have come to rest and whose part is still being closed, and what waits for that.
///
/// A part is locked until it is closed. Until then the download's end is not reported, it gets no message, and no
/// destination is surveyed, because another download of the group may resume the same part.
struct ClosingJobs {
    /// The messages to each of the downloads, in the order they came.
    private var messages: [DownloadID: [DownloadEngine.Message]] = [:]
    private var surveys: [DownloadJob] = []

    var isEmpty: Bool { self.messages.isEmpty }

    mutating func begin(_ id: DownloadID) {
        self.messages[id] = self.messages[id] ?? []
    }

    /// Holds a message back if the download that it is for is one of these.
    ///
    /// - Returns: Whether it is held back.
    mutating func hold(_ message: DownloadEngine.Message) -> Bool {
        guard let id = message.recipient, self.messages[id] != nil else { return false }
        self.messages[id]?.append(message)
        return true
    }

    /// Holds a survey back until no part is being closed.
    ///
    /// - Returns: Whether it is held back.
    mutating func hold(surveyOf job: DownloadJob) -> Bool {
        guard !self.isEmpty else { return false }
        self.surveys.append(job)
        return true
    }

    /// Notes that a download's part is closed.
    ///
    /// - Returns: The download's messages, and the surveys to begin.
    mutating func end(_ id: DownloadID) -> (messages: [DownloadEngine.Message], surveys: [DownloadJob]) {
        let messages = self.messages.removeValue(forKey: id) ?? []
        guard self.isEmpty else { return (messages, []) }
        defer { self.surveys = [] }
        return (messages, self.surveys)
    }
}

extension DownloadEngine.Message {
    /// The download that the message is for; nil if it is for the whole group or comes from the engine itself.
    fileprivate var recipient: DownloadID? {
        switch self {
        case .event(let id, _), .move(let id, _), .remove(let id): id
        case .ask(let job, _, _): job.id
        case .add, .closed, .tick, .limits, .noticed, .adjust, .limit, .snapshot, .stopResuming, .close: nil
        }
    }
}
