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

    /// Whether it can be found out that the resource is still the same: by its validator, or by the bytes before the first
    /// missing one, which are asked for again. Where byte 0 is missing there are none, and what is kept may be followed by
    /// nothing that is compared.
    func isComparable(with source: SourceID) -> Bool {
        self.resource.isProvable && self.reference == source || (self.missing.first?.lowerBound ?? 0) > 0
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
