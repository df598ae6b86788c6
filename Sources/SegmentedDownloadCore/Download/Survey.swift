/// What exists at the destination before a download.
package enum Survey: Hashable, Sendable {
    case nothing
    /// A part file of an earlier run, its claims verified.
    case partial(SavedPartial)
    /// A finished file.
    case existing(ExistingFile)
}

/// The partial file of an earlier run. All bytes not in ``missing`` are on disk and verified.
package struct SavedPartial: Hashable, Sendable {
    package let resource: RemoteResource
    package let completeLength: Int64
    /// The bytes still to be fetched, ordered and disjoint.
    package let missing: [Range<Int64>]
    /// The source that ``resource`` came from, absent if the request does not name it.
    package let reference: SourceID?
    /// The bytes on disk from sources of which only samples were compared.
    package let marked: [MarkedRanges]
    /// Whether the complete file once did not match its digest. Without a digest none of its bytes is trusted.
    package var isRejected = false
    /// Whether the complete file will be verified against a digest.
    package var hasDigests = false
    /// Whether the digests that the download was begun with still apply. They identify the file independently of its
    /// URL.
    package var isPinned = false
    /// If set, only the bytes before this offset are trusted.
    var trustedEnd: Int64?

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

/// An existing file at the destination.
package struct ExistingFile: Hashable, Sendable {
    package let content: VerifiedFile.Content
    package let requirements: VerifiedFile.Requirements
    /// The identity in the file's extended attribute, absent if segdl did not write the file or it was edited since.
    package let record: RemoteResource?
    /// The modification time, absent if it is outside the years that HTTP can state. Rounded down to a second.
    package let modified: HTTPDate?
    /// How the request that fetched the file differs from this one, as a clause for a message; nil if nothing is known of that.
    package var otherRequest: String?
    /// Whether a job recorded for this request that the file gets its name with the bytes that it has.
    package var isRecorded = false

    package init(
        _ content: VerifiedFile.Content, for requirements: VerifiedFile.Requirements = .init(),
        record: RemoteResource? = nil, modified: HTTPDate? = nil
    ) {
        self.content = content
        self.requirements = requirements
        self.record = record
        self.modified = modified
    }

    package var length: Int64 { self.content.length }

    /// Whether the file matches the digests that are required, or is as a job recorded it. Absent if there is neither.
    package var isIdentified: Bool? {
        if self.requirements.hasDigests { return (try? self.judged(by: .digests)) != nil }
        return self.isRecorded ? true : nil
    }

    /// The file as the one that was asked for.
    ///
    /// - Throws: ``DownloadError`` if it is not.
    package func judged(by proof: VerifiedFile.Proof) throws(DownloadError) -> VerifiedFile {
        try .judged(self.content, for: self.requirements, by: proof)
    }
}
