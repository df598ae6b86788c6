/// Names one download of a group.
package struct DownloadID: Hashable, Comparable, Sendable {
    package let rawValue: Int

    package init(_ rawValue: Int) {
        self.rawValue = rawValue
    }

    package static func < (left: DownloadID, right: DownloadID) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// What happens to a group.
package enum GroupEvent: Sendable {
    case added(DownloadID, DownloadSettings, seed: UInt64)
    /// Its turn is to come before the other's, or first of all.
    case moved(DownloadID, before: DownloadID?)
    /// It rests and is of no interest any more.
    case removed(DownloadID)
    case tick
    case download(DownloadID, MachineEvent)
    /// The group may use more, or less.
    case limits(GroupStateMachine.Limits)
    /// A download is to have another share. Above 0, up to 1.
    case priority(DownloadID, Double)
    /// A download is to have another number of connections.
    case segments(DownloadID, DownloadOptions.Segments)
    /// The rate at which bytes may come has changed: how many connections pay must be found out anew.
    case rateChanged
}

/// What a group wants done.
package enum GroupAction: Hashable, Sendable {
    /// Make this request in a task of its own.
    case fetch(DownloadID, FetchOrder)
    case download(DownloadID, DownloadAction)
}

/// What happens to one download.
package enum MachineEvent: Hashable, Sendable {
    case surveyed(Survey)
    case found(Survey)
    /// The part is ready; whether somebody reads along.
    case prepared(ReadingWindow? = nil)
    /// Everything before the offset has been taken by who reads along.
    case taken(upTo: Int64, window: UInt64)
    case storageFailed(Failure)
    case checkpointed(bytes: Int64)
    case checkpointFailed(Failure)
    case revised
    case placed
    case discarded
    case responded(LeaseID, RangeResponse, suggestedName: String?)
    case narrowed(LeaseID, to: Int64)
    case limitReached(LeaseID)
    case ended(LeaseID, LeaseEnd)
    case pause
    case resume
    case cancel(keepingPartial: Bool)
}

extension DownloadStateMachine {
    /// Takes an event and returns what should happen.
    mutating func handle(_ event: MachineEvent, now: Duration) -> [DownloadAction] {
        switch event {
        case .surveyed(let survey): self.surveyed(survey, now: now)
        case .found(let survey): self.found(survey, now: now)
        case .prepared(let window): self.prepared(window, now: now)
        case .taken(let offset, let window): self.taken(upTo: offset, of: window)
        case .storageFailed(let failure): self.storageFailed(failure)
        case .checkpointed(let bytes): self.checkpointed(bytes: bytes)
        case .checkpointFailed(let failure): self.checkpointFailed(failure)
        case .revised: self.revised()
        case .placed: self.placed()
        case .discarded: self.discarded()
        case .responded(let lease, let response, let name):
            self.responded(lease, response, suggestedName: name, now: now)
        case .narrowed(let lease, let limit): self.narrowed(lease, to: limit, now: now)
        case .limitReached(let lease): self.limitReached(lease)
        case .ended(let lease, let end): self.ended(lease, end, now: now)
        case .pause: self.pause()
        case .resume: self.resume()
        case .cancel(let keepingPartial): self.cancel(keepingPartial: keepingPartial)
        }
    }
}
