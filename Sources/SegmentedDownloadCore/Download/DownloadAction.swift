/// An action that a download's state machine requests. Actions are orthogonal and are performed in the order given.
package enum DownloadAction: Hashable, Sendable {
    /// Inspect the destination and the files of an earlier run. Answered by `surveyed` or `storageFailed`.
    case survey
    /// From now on ignore the file at the destination, and replace it once the new
    /// one is complete.
    case replaceExisting
    /// Create the part file, or adopt the surveyed one. Answered by `prepared`, `found` or `storageFailed`.
    case prepare(Preparation)
    /// Answer a waiting fetch: write the body, or stop.
    case answer(LeaseID, LeaseDecision)
    /// Lower the limit of a running lease. Answered at once by `narrowed`.
    case narrow(LeaseID, to: Int64)
    /// Close a lease's connection. Answered by `ended`.
    case revoke(LeaseID)
    /// Make the written bytes durable and record them. Answered by `checkpointed` or `checkpointFailed`.
    case checkpoint(isPause: Bool)
    /// Withdraw bytes that are no longer trusted and record which source is the reference. Answered by `revised` or
    /// `checkpointFailed`.
    case revise(Revision)
    /// Compare the destination also with these digests of a server in later surveys. A survey follows.
    case require([ExpectedDigest])
    /// Verify the file and move it into place. Answered by `placed` or `storageFailed`.
    case place(length: Int64, evidence: Evidence = .validator)
    /// Stop reading files for a survey, or to verify the complete file. `storageFailed` with the code `cancelled` follows, unless
    /// the step is nearly done.
    case interrupt
    /// Close and delete the partial file. Answered by `discarded` or `storageFailed`.
    case discard
    /// Report to observers.
    case report(DownloadReport)
    /// The download is at rest. Nothing follows unless it is resumed.
    case conclude(DownloadConclusion)
}

/// How the part file is made ready.
package struct Preparation: Hashable, Sendable {
    package enum Mode: Hashable, Sendable {
        /// A new part. It replaces an older one.
        case fresh
        /// The part of an earlier run, as surveyed.
        case adopted
        /// Like `adopted`, but claims that end after the offset are withdrawn.
        case adoptedUp(to: Int64)
    }

    package var resource: RemoteResource
    package let mode: Mode
    /// The file name that the response suggests, for a destination without a name.
    package let suggestedName: String?
    /// The source that answered.
    package let source: SourceID
    /// Whether the manifest keeps its recorded resource and sources, because nothing proves yet that this source has
    /// the same bytes.
    package let keepsRecord: Bool
    /// Whether the surveyed part is kept under another name until this download is complete.
    package let setsAside: Bool
    /// Whether what was stated before holds for the new part, too: the file is fetched again because it had the wrong digest.
    package let keepsStatements: Bool
}

/// What shows, without a digest, that a complete file is one version of the resource.
package enum Evidence: Hashable, Sendable {
    /// The validator, if the resource has one that can.
    case validator
    /// For some bytes only a comparison of samples.
    case comparison
    /// Nothing: the origin did not confirm that the file did not change while its last bytes were being sent.
    case none
}

/// A change in which sources are trusted.
package struct Revision: Hashable, Sendable {
    /// The bytes to fetch anew, ordered and disjoint.
    package let withdrawn: [Range<Int64>]
    /// The source whose answers now define the resource, and that resource.
    package let reference: SourceID
    package let resource: RemoteResource
    /// Whether unmarked claims are to be marked, because they are from an earlier reference.
    package let remarks: Bool
    /// Whether the manifest keeps its recorded resource and sources.
    package let keepsRecord: Bool
}

/// The answer to a waiting fetch.
package enum LeaseDecision: Hashable, Sendable {
    /// Write bytes up to the limit, then ask again. Skip the bytes before `from`, which another connection has written.
    case proceed(limit: Int64, from: Int64? = nil)
    /// Write nothing more.
    case stop
}

/// A request for one segment.
package struct FetchOrder: Hashable, Sendable {
    package let lease: LeaseID
    package var source = SourceID.first
    /// The segment to fetch, or ``Segment/ID/none`` for a sample. The segment of a hedge joins the plan only when the
    /// hedge takes over.
    package let segment: Segment.ID
    package let request: RangeRequest
    /// The first byte to write. Bytes requested before it are on disk and are compared with it.
    package let writesFrom: Int64
    /// The offset at which the lease ends for now.
    package let limit: Int64
    /// Withdraw claims that end after this offset first, because one stream delivers those bytes again.
    package var forgetsFrom: Int64?

    /// The requested bytes, absent if the range is open-ended.
    var spot: Range<Int64>? { self.request.upperBound.map { self.request.lowerBound..<$0 } }

    /// The segment that a hedge may take over from another connection. Nothing is written unless that connection is
    /// late.
    package var hedged: Segment.ID?

    /// The mark of the claims, see ``Claim/mark``.
    package var mark: UInt8 = 0

    /// Whether the body is not compared with what its own response states about it, see ``Proving/ignoresContentDigests``.
    package var ignoresContentDigests = false

    /// Whether nothing is written and the bytes are only compared with those on disk.
    package var isSample: Bool { self.segment == .none }
}

/// A report to the observers of a download.
package enum DownloadReport: Hashable, Sendable {
    case started(resource: RemoteResource, resumedFrom: Int64, segmented: Bool)
    case segmentOpened(Segment.ID, Range<Int64>, SourceID)
    case segmentSplit(Segment.ID, Range<Int64>)
    case segmentDone(Segment.ID, Range<Int64>, SourceID)
    case segmentRetry(Segment.ID, Range<Int64>, SourceID)
    case retrying(DownloadError, attempt: Int, delay: Duration)
    case note(String)
    case checkpointed(bytes: Int64)
    /// The number of connections to the only source that was found to be useful. A later download may start with it.
    case connectionCountFound(Int)
    case restarted(String)
    /// The partial file belongs to another file and is set aside until this download is complete. The clause says how
    /// it differs.
    case setAside(String)
}

/// How a download ended, or why it is at rest.
package enum DownloadConclusion: Hashable, Sendable {
    /// The file is in place, or was there already.
    case completed(VerifiedFile)
    case failed(DownloadError)
    /// All bytes fetched are durable. The download can be resumed.
    case paused
    case cancelled

    /// The complete file; nil if the download has not completed.
    package var file: VerifiedFile? {
        if case .completed(let file) = self { file } else { nil }
    }
}
