/// Identifies a source of a download by its index in the request.
package struct SourceID: Hashable, Comparable, Sendable {
    package let rawValue: Int

    package static let first = SourceID(0)

    package init(_ rawValue: Int) {
        self.rawValue = rawValue
    }

    package static func < (left: SourceID, right: SourceID) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The mark of bytes that the source writes while only samples of it were compared, see ``Claim/mark``.
    var mark: UInt8 { UInt8(clamping: self.rawValue + 1) }
}

/// The sources of a download, and how far each is trusted.
///
/// The source whose answer defined the resource is the reference. Another source may write bytes once samples of it
/// agree with the bytes on disk. Its validators are compared only with its own earlier ones.
struct SourceTable: Hashable, Sendable {
    /// How far a source is trusted.
    enum Trust: Hashable {
        /// Not compared yet. Becomes any other.
        case unproven
        /// The reference, or a source that began while there was nothing to compare it with. Becomes any other but
        /// `sampled`.
        case proven
        /// Its samples agreed; its bytes are audited at the end. Becomes `failed`, `quarantined`, `unproven` when a
        /// file is begun again, or `proven` when everything is fetched from it alone.
        case sampled
        /// Not used again: it failed permanently or does not serve ranges. Its bytes are kept. Becomes `quarantined`,
        /// `unproven` when a file is begun again, or `proven` when everything is fetched from it alone.
        case failed
        /// Not used, and its bytes are withdrawn, because they differ or have the wrong digest. Becomes `unproven` when a file
        /// is begun again, or when the byte that it contradicted is withdrawn.
        case quarantined
    }

    struct Entry: Hashable {
        let host: String
        var trust = Trust.unproven
        /// The identity that its answers must match.
        var resource: RemoteResource?
        /// Consecutive failures without a new byte.
        var failures = 0
        var retryAt: Duration = .zero
        /// Bytes per second of one of its connections, as last measured.
        var rate: Double?
        /// When the latest request that was answered with bytes was made; nil if it has answered the first one for the file at most,
        /// or has refused one since.
        var answeredRequest: Duration?
        private(set) var exposure = Exposure()
        /// The offsets of samples that agreed with the bytes on disk.
        var samples: [Int64] = []
        /// The bytes that it delivered in this run, ordered and disjoint.
        var contributed: [Range<Int64>] = []
        var deviations = Deviations()
        /// The offset at which it differed from another source and was judged wrong.
        var overruledAt: Int64?

        /// Records an answer that matched, and ends the counts of those that did not.
        ///
        /// - Parameter bytes: ``Exposure/bytesWritten`` when the answer was requested.
        mutating func noteAccepted(now: Duration?, after bytes: Int64) {
            self.exposure.noteAccepted(now: now, after: bytes)
            self.deviations.resolve()
        }

        /// Records that bytes of the file arrived.
        mutating func noteWritten(_ count: Int64, now: Duration) { self.exposure.noteWritten(count, now: now) }

        /// Forgets its answers and bytes, because the file is begun anew.
        mutating func restart() {
            self.contributed = []
            self.samples = []
            self.failures = 0
            self.overruledAt = nil
            self.exposure.restart()
            self.deviations.resolve()
            self.deviations.isDoubtful = false
            // The recorded identity may be of another version.
            self.resource = nil
            if self.isUsable { self.trust = .unproven }
        }

        var isUsable: Bool { self.trust == .proven || self.trust == .sampled }
        /// Whether it could become the reference.
        var canBeReference: Bool { self.isUsable && self.resource != nil }
        var isGone: Bool { self.trust == .failed || self.trust == .quarantined }
    }

    /// The answers of a source that do not match its recorded identity.
    struct Deviations: Hashable {
        /// Those with a different validator.
        var disagreement = Disagreement()
        /// Those from another place.
        var moves = Disagreement()
        /// Whether one had the recorded strong tag and another date, which proves nothing. The bytes of all of them are then
        /// compared at the end.
        var isDoubtful = false

        /// Ends the counts, because an answer matched.
        mutating func resolve() {
            self.disagreement.resolve()
            self.moves.resolve()
        }
    }

    /// The source that delivered bytes on disk.
    enum Contributor: Hashable {
        case source(SourceID)
        /// The index in ``earlier`` of a source of an earlier run or of a replaced reference.
        case earlier(Int)
    }

    private(set) var entries: [Entry]
    var reference = SourceID.first
    /// Bytes of sources of which only samples were compared, from earlier runs or from before the reference was
    /// replaced.
    var earlier: [[Range<Int64>]] = []
    /// The index in ``earlier`` of bytes that another program fetched and that were compared with the present reference,
    /// absent if there are none.
    private(set) var adopted: Int?
    /// The reference's own bytes from an earlier run.
    private(set) var kept: [Range<Int64>] = []

    /// The bytes of an earlier run that are on disk.
    struct Written: Hashable {
        var ranges: [Range<Int64>] = []
        var marked: [MarkedRanges] = []
        /// Whether the unmarked bytes are from another source than the one that answered now.
        var isElsewheres = false
    }

    init(hosts: [String]) {
        precondition(!hosts.isEmpty, "a download has a source")
        self.entries = hosts.map { Entry(host: $0) }
    }

    subscript(id: SourceID) -> Entry {
        get { self.entries[id.rawValue] }
        set { self.entries[id.rawValue] = newValue }
    }

    /// Whether there is more than one source.
    var hasMirrors: Bool { self.entries.count > 1 }

    var ids: [SourceID] { self.entries.indices.map { SourceID($0) } }

    /// Whether another source than this one can still be used.
    func hasAlternative(to id: SourceID) -> Bool {
        self.ids.contains { $0 != id && !self[$0].isGone }
    }

    /// Whether another source than this one can be used and has not failed since it last sent a new byte.
    func hasUnfailed(besides id: SourceID) -> Bool {
        self.ids.contains { $0 != id && !self[$0].isGone && self[$0].failures == 0 }
    }

    /// The source to ask next while none has answered: the one with the fewest failures. Nil if all have failed
    /// permanently.
    var leastFailed: SourceID? {
        self.ids.filter { !self[$0].isGone }.min { (self[$0].failures, $0) < (self[$1].failures, $1) }
    }

    /// The source to ask first.
    var firstAsked: SourceID { self.leastFailed ?? .first }

    /// Stops using all sources except the reference.
    mutating func dismissOthers() {
        for id in self.ids where id != self.reference { self[id].trust = .failed }
    }

    /// Makes the source that answered the reference. The others must then be compared with it.
    ///
    /// - Parameter written: The bytes of an earlier run.
    mutating func define(_ resource: RemoteResource, by id: SourceID, _ written: Written) {
        self.reference = id
        self.earlier = written.marked.map(\.ranges)
        self.adopted = written.marked.firstIndex { $0.mark == Claim.adoptedMark }
        let others = self.earlier.flatMap { $0 }.merged()
        self.kept = written.ranges.subtracting(others)
        if written.isElsewheres, !self.kept.isEmpty {
            self.earlier.append(self.kept)
            self.kept = []
        }
        for index in self.entries.indices { self.entries[index].restart() }
        self[id].resource = resource
        self[id].trust = .proven
    }

    /// Drops samples within withdrawn ranges: agreement with untrusted bytes proves nothing.
    mutating func withdraw(_ ranges: [Range<Int64>]) {
        for index in self.entries.indices {
            self.entries[index].samples.removeAll { place in ranges.contains { $0.contains(place) } }
        }
    }

    /// Makes sources that are gone usable again, because the file is begun again or a run begins: they may have the file now.
    ///
    /// - Parameter excluded: Those that alone had the wrong digest.
    mutating func reinstate(besides excluded: [SourceID] = []) {
        for id in self.ids where self[id].isGone || excluded.contains(id) {
            self[id].trust = excluded.contains(id) ? .quarantined : .unproven
            (self[id].failures, self[id].retryAt) = (0, .zero)
        }
    }

    /// Counts a failure, after which the source may be asked again, or not any more.
    ///
    /// - Returns: The number of its consecutive failures.
    mutating func fail(_ id: SourceID, _ decision: RetryDecision, now: Duration) -> Int {
        self[id].failures += 1
        switch decision {
        case .again(let delay, _), .elsewhere(let delay): self[id].retryAt = now + delay
        case .fewerConnections, .leaveSource, .giveUp: self[id].trust = .failed
        }
        return self[id].failures
    }

    /// Records the bytes that a lease delivered.
    mutating func contribute(_ range: Range<Int64>, by id: SourceID) {
        guard self.hasMirrors || !self.earlier.isEmpty, !range.isEmpty else { return }
        self[id].contributed = (self[id].contributed + [range]).merged()
    }

    /// The contributor of a byte: the reference, unless another one is recorded.
    func contributor(of offset: Int64) -> Contributor {
        let isHere = { (range: Range<Int64>) in range.contains(offset) }
        if let id = self.ids.first(where: { self[$0].contributed.contains(where: isHere) }) { return .source(id) }
        if let index = self.earlier.firstIndex(where: { $0.contains(where: isHere) }) { return .earlier(index) }
        return .source(self.reference)
    }

    func contributed(by contributor: Contributor) -> [Range<Int64>] {
        switch contributor {
        case .source(let id): self[id].contributed
        case .earlier(let index): self.earlier[index]
        }
    }

    /// Makes another source the reference. Only samples of it were compared with the bytes of the old one.
    mutating func replaceReference(by id: SourceID) {
        let own = (self.kept + self[self.reference].contributed).merged()
        self[self.reference].contributed = []
        self.kept = []
        if !own.isEmpty { self.earlier.append(own) }
        // A source that began while there was nothing to compare it with must now be compared with the new reference.
        for other in self.ids where other != id && self[other].trust == .proven {
            if !self[other].contributed.isEmpty { self.earlier.append(self[other].contributed) }
            self[other].contributed = []
            self[other].samples = []
            self[other].trust = .unproven
        }
        self.reference = id
        self.adopted = nil
    }

    /// Drops what is recorded of bytes from before, because they are withdrawn.
    mutating func forgetEarlier() {
        self.earlier = []
        self.adopted = nil
    }

    /// Returns and clears the reference's bytes from an earlier run, which are no longer trusted.
    mutating func takeKept() -> [Range<Int64>] {
        defer { self.kept = [] }
        return self.kept
    }

    /// The mark for bytes that a source writes, see ``Claim/mark``.
    func mark(of id: SourceID) -> UInt8 {
        self[id].trust == .proven ? 0 : id.mark
    }

    /// The bytes that this source did not deliver.
    func contributions(besides id: SourceID, of completeLength: Int64) -> [Range<Int64>] {
        self[id].contributed.complement(in: completeLength)
    }
}
