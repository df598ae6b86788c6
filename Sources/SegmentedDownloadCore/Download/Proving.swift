/// What proves that the bytes on disk are those of the resource.
struct Proving: Hashable, Sendable {
    /// Whether the bytes of an earlier run belong to the resource.
    enum Proof: Hashable {
        /// A validator proves it, or there are no such bytes.
        case unneeded
        /// Only a comparison can prove it, and no compared byte has agreed yet. Becomes `ended`.
        ///
        /// Until then, only segments that begin with a comparison are requested. Others would write bytes that may
        /// belong to another file.
        case awaited
        /// A comparison has proven it, or the bytes that none could prove were withdrawn.
        case ended

        /// Ends a wait.
        mutating func end() {
            if self == .awaited { self = .ended }
        }
    }

    var proof: Proof
    /// The number of bytes before a resumed segment that are requested again and compared. 0 if a validator proves the
    /// resource.
    let overlap: Int64
    /// The number of groups in ``SourceTable/earlier`` that were compared before anything was written.
    let provenGroups: Int
    /// Whether the complete file will be compared with a digest, which is stronger than audits.
    let hasDigest: Bool
    /// Whether bodies are not compared with the digests that their own responses state any more: one of them differed, and the
    /// digest that the user gave decides about the whole file.
    var ignoresContentDigests = false
    /// Whether the manifest still names another source than the one that answered, until that one is proven equal.
    var owesRecord: Bool
}
