import SegmentedDownloadCore

/// What is on one download's disk: which bytes of which version were written where, and what of it is durable.
struct ModelDisk {
    /// Bytes written by one lease in one go.
    struct Run: Hashable {
        var range: Range<Int64>
        let version: Int
        /// How far the bytes lie from where they belong; anything but zero is corruption.
        let shift: Int64
    }

    /// What the manifest says of the part file, absent until one is prepared.
    private(set) var resource: RemoteResource?
    private(set) var runs: [Run] = []
    private var durable: [Run] = []
    /// Counts withdrawals, so that a sync under way does not vouch for what was written since.
    private(set) var generation = 0
    var isPlaced = false

    /// Whether the bytes were claimed by nobody before.
    mutating func write(_ range: Range<Int64>, version: Int, shift: Int64) -> Bool {
        let isFree = !self.runs.contains { $0.range.overlaps(range) }
        let neighbour = self.runs.firstIndex {
            $0.range.upperBound == range.lowerBound && $0.version == version && $0.shift == shift
        }
        if let neighbour {
            self.runs[neighbour].range = self.runs[neighbour].range.lowerBound..<range.upperBound
        } else {
            self.runs.append(Run(range: range, version: version, shift: shift))
        }
        return isFree
    }

    /// The version of the byte on disk, absent where nothing is.
    func version(at offset: Int64) -> Int? {
        self.runs.last { $0.range.contains(offset) }?.version
    }

    mutating func perform(_ preparation: Preparation) {
        self.resource = preparation.resource
        switch preparation.mode {
        case .fresh:
            self.runs = []
            self.durable = []
        case .adopted:
            self.durable = self.runs
        case .adoptedUp(let limit):
            self.runs = Self.clipped(self.runs, to: limit)
            self.durable = self.runs
        }
    }

    mutating func makeDurable(_ snapshot: [Run], generation: Int) -> Int64 {
        // What was withdrawn since may have been written anew: that is not what was synced.
        guard generation == self.generation else { return 0 }
        self.durable = snapshot
        return snapshot.reduce(0) { $0 + Int64($1.range.count) }
    }

    /// A sync failed: only what was durable before is claimed any more.
    mutating func forgetVolatile() {
        self.runs = self.durable
        self.generation += 1
    }

    /// Withdraws what is claimed at and behind the offset.
    mutating func forget(from offset: Int64) {
        self.runs = Self.clipped(self.runs, to: offset)
        self.durable = Self.clipped(self.durable, to: offset)
        self.generation += 1
    }

    private static func clipped(_ runs: [Run], to limit: Int64) -> [Run] {
        runs.filter { $0.range.lowerBound < limit }.map {
            Run(range: $0.range.clamped(to: 0..<limit), version: $0.version, shift: $0.shift)
        }
    }

    mutating func discard() {
        self = ModelDisk()
    }

    /// What the next run finds.
    func survey(length: Int64?) -> Survey {
        // An empty file keeps no manifest.
        guard let resource, let length, length > 0 else { return .nothing }
        var missing: [Range<Int64>] = []
        var offset: Int64 = 0
        for range in self.runs.map(\.range).sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if range.lowerBound > offset { missing.append(offset..<range.lowerBound) }
            offset = max(offset, range.upperBound)
        }
        if offset < length { missing.append(offset..<length) }
        return .partial(SavedPartial(resource: resource, completeLength: length, missing: missing))
    }

    /// What is wrong with the file that is about to be placed, if anything.
    func flaw(length: Int64, lengths: [Int64]) -> String? {
        var offset: Int64 = 0
        for run in self.runs.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
            guard run.range.lowerBound == offset else {
                return run.range.lowerBound < offset ? "byte \(offset) was written twice" : "byte \(offset) is a hole"
            }
            guard run.shift == 0 else { return "bytes \(run.range) lie \(run.shift) from where they belong" }
            guard run.version == self.runs[0].version else {
                return "bytes of versions \(self.runs[0].version) and \(run.version) meet in one file"
            }
            offset = run.range.upperBound
        }
        guard let version = self.runs.first?.version else { return lengths.contains(0) ? nil : "nothing was written" }
        guard offset == length else { return "it has \(offset) bytes and is placed as \(length)" }
        return offset == lengths[version] ? nil : "it has \(offset) of \(lengths[version]) bytes"
    }
}
