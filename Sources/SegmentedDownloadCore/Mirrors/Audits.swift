/// A comparison of bytes on disk with those of the reference.
struct Audit: Hashable, Sendable {
    let spot: Range<Int64>
    let contributor: SourceTable.Contributor
}

/// The comparisons to make before the file counts as complete.
struct Audits: Hashable, Sendable {
    /// The bytes on disk that one contributor delivered.
    typealias Group = (contributor: SourceTable.Contributor, runs: [Range<Int64>])

    /// In the order in which they are requested. Those before the cursor have been. A request moves only the cursor,
    /// because there may be thousands, and the state machine works on a copy.
    private var chosen: [Audit] = []
    private var cursor = 0
    /// Those that are requested now.
    private var asked: [LeaseID: Audit] = [:]
    /// Those to request again, the next one last.
    private var again: [Audit] = []
    /// Whether those at the end of the download were chosen.
    private(set) var areChosen = false

    /// All that have not been made.
    var open: [Audit] {
        self.asked.sorted { $0.key.rawValue < $1.key.rawValue }.map(\.value) + self.again.reversed()
            + self.chosen[self.cursor...]
    }

    var isEmpty: Bool { self.asked.isEmpty && self.again.isEmpty && self.cursor == self.chosen.count }

    // MARK: Choosing

    /// Those that compare what contributors delivered: at both ends of every run and at random places.
    ///
    /// No end is left out, however many there are: a file that differs only around one of them would not be noticed.
    /// Each run took a request of its own, so the cost is in proportion.
    static func comparing(_ groups: [Group], using generator: inout SplitMix64) -> [Audit] {
        groups.flatMap { group in
            let ends = group.runs.flatMap { SampleSpots.ends(of: $0) }
            let spots = ends + SampleSpots.random(in: group.runs, using: &generator)
            return spots.map { Audit(spot: $0, contributor: group.contributor) }
        }
    }

    mutating func add(_ audits: [Audit]) {
        guard !audits.isEmpty else { return }
        self.chosen = self.chosen[self.cursor...] + audits
        self.cursor = 0
    }

    /// Adds those at the end of the download.
    mutating func choose(_ audits: [Audit]) {
        self.areChosen = true
        self.add(audits)
    }

    /// Those at the end must be chosen again, because bytes are missing again.
    mutating func reopen() { self.areChosen = false }

    /// Drops all, and those at the end must be chosen again, because the reference is another one.
    mutating func restart() { self = Audits() }

    /// Drops all.
    mutating func removeAll() {
        let areChosen = self.areChosen
        self = Audits()
        self.areChosen = areChosen
    }

    /// Drops those of bytes that are withdrawn.
    mutating func remove(of contributor: SourceTable.Contributor) {
        self.asked = self.asked.filter { $0.value.contributor != contributor }
        self.again.removeAll { $0.contributor == contributor }
        self.chosen = self.chosen[self.cursor...].filter { $0.contributor != contributor }
        self.cursor = 0
    }

    // MARK: Asking

    /// The contributors whose bytes are to be compared.
    var contributors: [SourceTable.Contributor] {
        self.open.reduce(into: []) { all, audit in
            if !all.contains(audit.contributor) { all.append(audit.contributor) }
        }
    }

    /// The next comparison to request. Nil if all are requested.
    var next: Audit? { self.again.last ?? (self.cursor < self.chosen.count ? self.chosen[self.cursor] : nil) }

    /// Records the request of the next comparison.
    mutating func ask(_ lease: LeaseID) {
        guard let next = self.next else { return }
        if self.again.popLast() == nil { self.cursor += 1 }
        self.asked[lease] = next
    }

    /// Whether a request makes one of the comparisons.
    func contains(_ lease: LeaseID) -> Bool { self.asked[lease] != nil }

    /// Records the answer to a request. If the server sent less than requested, the rest is compared separately.
    mutating func finish(_ lease: Lease, agrees: Bool) {
        guard let audit = self.asked.removeValue(forKey: lease.id) else { return }
        let reached = lease.order.request.lowerBound + lease.bytesReceived
        guard agrees, lease.responseEnd < audit.spot.upperBound, reached < audit.spot.upperBound else { return }
        self.again.append(Audit(spot: reached..<audit.spot.upperBound, contributor: audit.contributor))
    }

    /// Records that a request has ended. If it was not answered, it is made again.
    mutating func release(_ lease: LeaseID) {
        if let audit = self.asked.removeValue(forKey: lease) { self.again.append(audit) }
    }
}
