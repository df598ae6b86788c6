/// Bytes that are no longer trusted, until the manifest no longer claims them.
///
/// They are collected until none of their sources' leases is writing, and then withdrawn together.
struct Withdrawals: Hashable, Sendable {
    /// Sources with other bytes, whose contributions are still to be withdrawn.
    private(set) var sources: [SourceID] = []
    /// Other bytes to be withdrawn.
    private(set) var ranges: [Range<Int64>] = []
    /// The withdrawal in progress. No request is made until it ends.
    private(set) var revision: Revision?

    /// Whether nothing is withdrawn now or later.
    var isEmpty: Bool { self.revision == nil && self.sources.isEmpty && self.ranges.isEmpty }

    /// Whether the next withdrawal may begin.
    var isDue: Bool { self.revision == nil && !self.isEmpty }

    /// Whether a byte is among the ranges to be withdrawn or in the withdrawal in progress.
    func contains(_ offset: Int64) -> Bool {
        let isHere = { (range: Range<Int64>) in range.contains(offset) }
        return self.ranges.contains(where: isHere) || self.revision?.withdrawn.contains(where: isHere) == true
    }

    mutating func add(_ source: SourceID) { self.sources.append(source) }

    mutating func add(_ ranges: [Range<Int64>]) { self.ranges += ranges }

    /// Returns and clears what the next withdrawal consists of.
    mutating func take() -> (sources: [SourceID], ranges: [Range<Int64>]) {
        defer { (self.sources, self.ranges) = ([], []) }
        return (self.sources, self.ranges)
    }

    mutating func begin(_ revision: Revision) { self.revision = revision }

    /// Ends the withdrawal in progress. Returns its bytes.
    mutating func end() -> [Range<Int64>] {
        defer { self.revision = nil }
        return self.revision?.withdrawn ?? []
    }
}
