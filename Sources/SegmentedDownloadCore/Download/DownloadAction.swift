/// What a download's state machine wants done. Actions are orthogonal; their order is the order to perform them in.
package enum DownloadAction: Hashable, Sendable {
    /// Look at the destination and what an earlier run left beside it.
    case survey
    /// From now on overlook a file at the destination, and replace it by the finished one: it came from another resource.
    case replaceExisting
    /// Create the part file, or adopt the one that was surveyed. Answered by `prepared` or `storageFailed`.
    case prepare(Preparation)
    /// Tell a waiting fetch whether its body may be written.
    case answer(LeaseID, LeaseDecision)
    /// Lower a running lease's limit. Answered at once by `narrowed`.
    case narrow(LeaseID, to: Int64)
    /// Close a lease's connection. Answered by `ended`.
    case revoke(LeaseID)
    /// Make what is written durable and record it. Answered by `checkpointed` or `storageFailed`.
    case checkpoint(isPause: Bool)
    /// Withdraw what a source brought that is not believed any more, and record who is. Answered by `revised` or
    /// `checkpointFailed`.
    case revise(Revision)
    /// Verify the file of so many bytes and move it into place. Answered by `placed` or `storageFailed`. Where parts of it
    /// were only compared, that is all that validators prove of it.
    case place(length: Int64, isCompared: Bool = false)
    /// Give up verifying; `storageFailed` with code `cancelled` follows, unless the file is in place already.
    case interruptPlacing
    /// Close and delete what was fetched so far.
    case discard
    /// Tell the observers.
    case report(DownloadReport)
    /// Nothing more will come of this download until it is resumed, if ever.
    case conclude(DownloadConclusion)
}

/// How the part file comes to be.
package struct Preparation: Hashable, Sendable {
    package enum Mode: Hashable, Sendable {
        /// A fresh part; an older one, if any, is given up now that the new one has begun.
        case fresh
        /// What an earlier run left, as surveyed.
        case adopted
        /// As `adopted`, but only what lies before the offset stays claimed.
        case adoptedUp(to: Int64)
    }

    package let resource: RemoteResource
    package let mode: Mode
    /// Whether the remains found may be resumed (else they are replaced without a look).
    package let replaces: Bool
    /// The name the response suggests, for a destination that has none yet.
    package let suggestedName: String?
    /// Who answered.
    package var source = SourceID.first
    /// Whether the manifest keeps saying what it said of resource and sources: nothing proves yet that another source than
    /// the recorded one has the same bytes.
    package var keepsRecord = false
    /// Whether the part that was surveyed is kept under another name until this download is complete.
    package var setsAside = false
}

/// A change of mind about the sources.
package struct Revision: Hashable, Sendable {
    /// What is fetched anew, ordered and disjoint.
    package let withdrawn: [Range<Int64>]
    /// The source whose answers define the resource now, and that resource.
    package let reference: SourceID
    package let resource: RemoteResource
    /// Whether what is claimed without a mark is another source's now.
    package let remarks: Bool
    /// Whether the manifest keeps saying what it said of resource and sources.
    package let keepsRecord: Bool
}

/// What a waiting fetch is told.
package enum LeaseDecision: Hashable, Sendable {
    /// Take bytes up to the limit, then ask again. Those before `from` somebody else has brought meanwhile; they are let pass.
    case proceed(limit: Int64, from: Int64? = nil)
    /// Take nothing more.
    case stop
}

/// One request to be made for one segment.
package struct FetchOrder: Hashable, Sendable {
    package let lease: LeaseID
    package var source = SourceID.first
    /// The segment that is fetched; none for a sample. That of a hedge is in no plan until it has taken over.
    package let segment: Segment.ID
    package let request: RangeRequest
    /// The first byte to be written. Those between the request's first byte and this one are on disk and are compared.
    package let writesFrom: Int64
    /// Where the lease ends for now.
    package let limit: Int64
    /// Claims at and behind this offset are withdrawn first: one stream will bring those bytes again.
    package var forgetsFrom: Int64?

    /// The bytes asked for, as far as they are known.
    var spot: Range<Int64>? { self.request.upperBound.map { self.request.lowerBound..<$0 } }

    /// The segment whose rest is asked for although another connection is at it: nothing is written unless that one is late.
    package var hedged: Segment.ID?

    /// The mark of what is written, see ``Claim/mark``.
    package var mark: UInt8 = 0

    /// Whether nothing is written: the bytes are held against those on disk.
    package var isSample: Bool { self.segment == .none }
}

/// What observers hear.
package enum DownloadReport: Hashable, Sendable {
    case started(resource: RemoteResource, resumedFrom: Int64, segmented: Bool)
    case segmentOpened(Segment.ID, Range<Int64>, SourceID)
    case segmentSplit(Segment.ID, Range<Int64>)
    case segmentDone(Segment.ID, Range<Int64>, SourceID)
    case segmentRetry(Segment.ID, Range<Int64>, SourceID)
    case retrying(Failure, attempt: Int, delay: Duration)
    case note(String)
    case checkpointed(bytes: Int64)
    /// So many connections to the only source paid; a later download may begin with them.
    case learned(connections: Int)
    case restarted(String)
    /// The partial file is of another file, and set aside until this download is complete. The clause says how it differs.
    case setAside(String)
}

/// How a download ended, or stopped for now.
package enum DownloadConclusion: Hashable, Sendable {
    /// In place and verified as far as there were means.
    case completed
    /// The destination already holds what was asked for.
    case alreadyComplete
    case failed(Failure)
    /// Everything fetched is durable; can be resumed.
    case paused
    case cancelled
}
