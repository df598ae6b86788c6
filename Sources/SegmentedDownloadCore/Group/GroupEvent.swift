/// Identifies a download of a group.
package struct DownloadID: Hashable, Comparable, Sendable {
    package let rawValue: Int

    package init(_ rawValue: Int) {
        self.rawValue = rawValue
    }

    package static func < (left: DownloadID, right: DownloadID) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// An event for a group of downloads.
package enum GroupEvent: Sendable {
    case added(DownloadID, DownloadSettings, seed: UInt64)
    /// The download moves in the start queue to before the other one, or to the front.
    case moved(DownloadID, before: DownloadID?)
    /// A download at rest is removed.
    case removed(DownloadID)
    case tick
    case download(DownloadID, MachineEvent)
    /// The group's limits have changed.
    case limits(GroupStateMachine.Limits)
    /// A download's priority has changed: above 0, up to 1.
    case priority(DownloadID, Double)
    /// The number of connections that the user wants for a download has changed.
    case segments(DownloadID, DownloadOptions.Segments)
    /// A rate limit has changed, so the useful number of connections must be found again.
    case rateChanged
    /// Other processes of this machine have posted notices.
    case noticed([HostNotice])
}

/// An action that the group requests.
package enum GroupAction: Hashable, Sendable {
    /// Make this request in a task of its own.
    case fetch(DownloadID, FetchOrder)
    case download(DownloadID, DownloadAction)
    /// Let other processes of this machine read a notice.
    case post(HostNotice)
}

/// An event for one download.
package enum MachineEvent: Hashable, Sendable {
    case surveyed(Survey)
    case found(Survey)
    /// The part is ready. The window is present if a reader or a digest consumes the bytes in order. `hasDigest`: the
    /// complete file will be compared with a digest, of the request, the manifest or the server.
    case prepared(ReadingWindow? = nil, hasDigest: Bool = false)
    /// The consumer of the window has taken all bytes before the offset.
    case taken(upTo: Int64, window: UInt64)
    case storageFailed(DownloadError)
    case checkpointed(bytes: Int64)
    case checkpointFailed(DownloadError)
    case revised
    case placed(VerifiedFile)
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
    /// Handles an event and returns the actions to perform.
    mutating func handle(_ event: MachineEvent, now: Duration) -> [DownloadAction] {
        switch event {
        case .surveyed(let survey): self.surveyed(survey, now: now)
        case .found(let survey): self.found(survey, now: now)
        case .prepared(let window, let hasDigest): self.prepared(window, hasDigest: hasDigest, now: now)
        case .taken(let offset, let window): self.taken(upTo: offset, of: window)
        case .storageFailed(let failure): self.storageFailed(failure)
        case .checkpointed(let bytes): self.checkpointed(bytes: bytes)
        case .checkpointFailed(let failure): self.checkpointFailed(failure)
        case .revised: self.revised()
        case .placed(let file): self.placed(file)
        case .discarded: self.discarded()
        case .responded(let lease, let response, let name):
            self.responded(lease, response, suggestedName: name, now: now)
        case .narrowed(let lease, let limit): self.narrowed(lease, to: limit, now: now)
        case .limitReached(let lease): self.limitReached(lease, now: now)
        case .ended(let lease, let end): self.ended(lease, end, now: now)
        case .pause: self.pause()
        case .resume: self.resume()
        case .cancel(let keepingPartial): self.cancel(keepingPartial: keepingPartial)
        }
    }
}
