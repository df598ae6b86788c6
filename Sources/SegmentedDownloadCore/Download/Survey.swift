/// What was found at the destination.
package enum Survey: Hashable, Sendable {
    case nothing
    /// An earlier run's part file, its claims checked.
    case partial(SavedPartial)
    /// A finished file.
    case existing(ExistingFile)
}

/// What an earlier run left: everything claimed is on disk and right.
package struct SavedPartial: Hashable, Sendable {
    package let resource: RemoteResource
    package let completeLength: Int64
    /// What is still to be fetched, ordered and disjoint.
    package let missing: [Range<Int64>]
    /// The source that ``resource`` was learnt from; absent if it is none of the request's.
    package let reference: SourceID?
    /// What is there of sources of which only samples were compared.
    package let marked: [MarkedRanges]
    /// Whether the whole once had another digest than it should: without a digest nothing of it is believed.
    package var isRejected = false
    /// Whether the whole will be verified against a digest.
    package var hasDigests = false
    /// Whether the digests that the download was begun with still apply: then the file is known, whatever the URL.
    package var isPinned = false

    package init(
        resource: RemoteResource, completeLength: Int64, missing: [Range<Int64>], reference: SourceID? = .first,
        marked: [MarkedRanges] = []
    ) {
        self.marked = marked
        self.resource = resource
        self.reference = reference
        self.completeLength = completeLength
        self.missing = missing
    }

    package var bytesKept: Int64 {
        self.missing.reduce(self.completeLength) { $0 - ($1.upperBound - $1.lowerBound) }
    }
}

/// A file with the destination's name.
package struct ExistingFile: Hashable, Sendable {
    package let length: Int64
    /// What the file's extended attribute says it is, absent for a file that is not ours.
    package let record: RemoteResource?
    /// Whether it agrees with the digests the user gave, absent if there are none.
    package let agreesWithDigests: Bool?

    package init(length: Int64, record: RemoteResource?, agreesWithDigests: Bool?) {
        self.length = length
        self.record = record
        self.agreesWithDigests = agreesWithDigests
    }
}
