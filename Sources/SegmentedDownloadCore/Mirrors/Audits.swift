/// A comparison of bytes on disk with those of the reference.
struct Audit: Hashable, Sendable {
    let spot: Range<Int64>
    let contributor: SourceTable.Contributor
    fileprivate(set) var lease: LeaseID?

    init(spot: Range<Int64>, contributor: SourceTable.Contributor) {
        self.spot = spot
        self.contributor = contributor
    }
}

/// The comparisons to make before the file counts as complete.
struct Audits: Hashable, Sendable {
    /// The bytes on disk that one contributor delivered.
    typealias Group = (contributor: SourceTable.Contributor, runs: [Range<Int64>])

    private(set) var open: [Audit] = []
    /// Whether those at the end of the download were chosen.
    private(set) var areChosen = false

    var isEmpty: Bool { self.open.isEmpty }

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

    mutating func add(_ audits: [Audit]) { self.open += audits }

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
    mutating func removeAll() { self.open = [] }

    /// Drops those of bytes that are withdrawn.
    mutating func remove(of contributor: SourceTable.Contributor) {
        self.open.removeAll { $0.contributor == contributor }
    }

    // MARK: Asking

    /// The contributors whose bytes are to be compared.
    var contributors: [SourceTable.Contributor] {
        self.open.reduce(into: []) { all, audit in
            if !all.contains(audit.contributor) { all.append(audit.contributor) }
        }
    }

    /// The next comparison to request. Nil if all are requested.
    var next: Audit? { self.open.first { $0.lease == nil } }

    /// Records the request of the next comparison.
    mutating func ask(_ lease: LeaseID) {
        guard let index = self.open.firstIndex(where: { $0.lease == nil }) else { return }
        self.open[index].lease = lease
    }

    /// Whether a request makes one of the comparisons.
    func contains(_ lease: LeaseID) -> Bool { self.open.contains { $0.lease == lease } }

    /// Records the answer to a request. If the server sent less than requested, the rest is compared separately.
    mutating func finish(_ lease: Lease, agrees: Bool) {
        guard let index = self.open.firstIndex(where: { $0.lease == lease.id }) else { return }
        let audit = self.open.remove(at: index)
        let reached = lease.order.request.lowerBound + lease.bytesReceived
        guard agrees, lease.responseEnd < audit.spot.upperBound, reached < audit.spot.upperBound else { return }
        self.open.append(Audit(spot: reached..<audit.spot.upperBound, contributor: audit.contributor))
    }

    /// Records that a request has ended. If it was not answered, it is made again.
    mutating func release(_ lease: LeaseID) {
        for index in self.open.indices where self.open[index].lease == lease { self.open[index].lease = nil }
    }
}
