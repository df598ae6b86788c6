/// Names one of a download's sources: its place in the order they were given, from 0.
package struct SourceID: Hashable, Comparable, Sendable {
    package let rawValue: Int

    package static let first = SourceID(0)

    package init(_ rawValue: Int) {
        self.rawValue = rawValue
    }

    package static func < (left: SourceID, right: SourceID) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The mark of what it writes while only samples of it were compared, see ``Claim/mark``.
    var mark: UInt8 { UInt8(clamping: self.rawValue + 1) }
}

/// What is known of the places a download's bytes may come from.
///
/// The source whose answer defined the resource is the reference. Another one may bring bytes once samples of it agreed with
/// what is on disk; its entity tag is compared with its own of before only.
struct SourceTable: Hashable, Sendable {
    /// How far a source is believed.
    enum Standing: Hashable {
        /// Nothing is known of it yet. Becomes any other.
        case unproven
        /// The reference, or about to be it: it was asked while there was nothing to compare it with. Becomes any other but
        /// `sampled`.
        case proven
        /// Its samples agreed, and what it brings is sampled again at the end. Becomes `failed` or `quarantined`.
        case sampled
        /// Asked no more: it failed for good, or does no ranges.
        case failed
        /// Asked no more, and nothing it brought is kept: it has other bytes. Becomes `unproven` where a file is begun anew.
        case quarantined
    }

    struct Entry: Hashable {
        let host: String
        var standing = Standing.unproven
        /// What its own responses must agree with.
        var resource: RemoteResource?
        /// Failures in a row without a byte.
        var failures = 0
        var retryAt: Duration = .zero
        /// Bytes per second of one of its connections, as last measured.
        var rate: Double?
        /// When the latest of the requests was made that were answered.
        var answeredRequest: Duration?
        /// Where its bytes were compared with those on disk, and agreed.
        var samples: [Int64] = []
        /// What of the file it brought in this run, ordered and disjoint.
        var contributed: [Range<Int64>] = []
        /// Its answers with another validator than before.
        var disagreement = Disagreement()
        /// The byte of another source that it contradicted, if nobody could say who of the two is right: it was not believed.
        var deniedAt: Int64?

        var isUsable: Bool { self.standing == .proven || self.standing == .sampled }
        /// Whether it could take the reference's place.
        var canBeReference: Bool { self.isUsable && self.resource != nil }
        var isGone: Bool { self.standing == .failed || self.standing == .quarantined }
    }

    /// Whose bytes they are.
    enum Contributor: Hashable {
        case source(SourceID)
        /// A source of an earlier run, or a reference that was replaced: the number of a group in ``earlier``.
        case earlier(Int)
    }

    private(set) var entries: [Entry]
    var reference = SourceID.first
    /// What sources brought of which only samples were compared, in earlier runs or before the reference was replaced.
    var earlier: [[Range<Int64>]] = []
    /// What an earlier run left of the reference's own bytes.
    private(set) var kept: [Range<Int64>] = []

    /// What an earlier run left on disk.
    struct Written: Hashable {
        var ranges: [Range<Int64>] = []
        var marked: [MarkedRanges] = []
        /// Whether the rest of it is of another source than the one that answered now.
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

    /// Whether there is more than one place to ask.
    var hasMirrors: Bool { self.entries.count > 1 }

    var ids: [SourceID] { self.entries.indices.map { SourceID($0) } }

    /// Whether somebody other than this source could go on.
    func hasAlternative(to id: SourceID) -> Bool {
        self.ids.contains { $0 != id && !self[$0].isGone }
    }

    /// The source to ask next while none has answered: each in order, then each again; none once all have failed for good.
    var leastFailed: SourceID? {
        self.ids.filter { !self[$0].isGone }.min { (self[$0].failures, $0) < (self[$1].failures, $1) }
    }

    /// The source to ask first.
    var firstAsked: SourceID { self.leastFailed ?? .first }

    /// Has nobody but the reference asked.
    mutating func dismissOthers() {
        for id in self.ids where id != self.reference { self[id].standing = .failed }
    }

    /// Begins with what one source answered: it is the reference, and the others are yet to be compared with it.
    ///
    /// - Parameter written: what an earlier run left.
    mutating func define(_ resource: RemoteResource, by id: SourceID, _ written: Written) {
        self.reference = id
        self.earlier = written.marked.map(\.ranges)
        let others = self.earlier.flatMap { $0 }.merged()
        self.kept = written.ranges.subtracting(others)
        if written.isElsewheres, !self.kept.isEmpty {
            self.earlier.append(self.kept)
            self.kept = []
        }
        for index in self.entries.indices {
            self.entries[index].contributed = []
            self.entries[index].samples = []
            self.entries[index].failures = 0
            self.entries[index].deniedAt = nil
            self.entries[index].disagreement.resolve()
            // What another source is like was learnt of another version, perhaps.
            self.entries[index].resource = nil
            if self.entries[index].isUsable { self.entries[index].standing = .unproven }
        }
        self[id].resource = resource
        self[id].standing = .proven
    }

    /// To have agreed with bytes that are believed no more proves nothing.
    mutating func withdraw(_ ranges: [Range<Int64>]) {
        for index in self.entries.indices {
            self.entries[index].samples.removeAll { place in ranges.contains { $0.contains(place) } }
        }
    }

    /// The file has changed: who had other bytes than the old one may have those of the new one.
    mutating func reinstate() {
        for index in self.entries.indices where self.entries[index].standing == .quarantined {
            self.entries[index].standing = .unproven
        }
    }

    /// Notes a failure. One that cannot pass, or one too many in a row, is the end of this source.
    mutating func fail(
        _ id: SourceID, _ failure: Failure, policy: RetryPolicy, now: Duration, delay: Duration,
        waited: Duration = .zero
    ) {
        self[id].failures += 1
        self[id].retryAt = now + delay
        if !policy.allows(failure, failures: self[id].failures, waited: waited) { self[id].standing = .failed }
    }

    /// Notes what a lease brought.
    mutating func contribute(_ range: Range<Int64>, by id: SourceID) {
        guard self.hasMirrors || !self.earlier.isEmpty, !range.isEmpty else { return }
        self[id].contributed = (self[id].contributed + [range]).merged()
    }

    /// Whose byte it is; the reference's if nobody else's.
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

    /// Another source takes the reference's place, of which only samples were compared with what the old one brought.
    mutating func replaceReference(by id: SourceID) {
        let own = (self.kept + self[self.reference].contributed).merged()
        self[self.reference].contributed = []
        self.kept = []
        if !own.isEmpty { self.earlier.append(own) }
        // One that began while there was nothing to compare it with is yet to be compared with this one.
        for other in self.ids where other != id && self[other].standing == .proven {
            if !self[other].contributed.isEmpty { self.earlier.append(self[other].contributed) }
            self[other].contributed = []
            self[other].samples = []
            self[other].standing = .unproven
        }
        self.reference = id
    }

    /// What an earlier run left of the reference's bytes, which are not believed any more.
    mutating func takeKept() -> [Range<Int64>] {
        defer { self.kept = [] }
        return self.kept
    }

    /// The mark for what a source writes, see ``Claim/mark``.
    func mark(of id: SourceID) -> UInt8 {
        self[id].standing == .proven ? 0 : id.mark
    }

    /// What of the file somebody else than this source brought, or an earlier run.
    func contributions(besides id: SourceID, of completeLength: Int64) -> [Range<Int64>] {
        self[id].contributed.complement(in: completeLength)
    }
}
