import SegmentedDownloadCore

/// The disk of one download: which bytes of which content are written where, and which of them are durable.
struct ModelDisk {
    /// Bytes written by one lease in sequence.
    struct Run: Hashable {
        var range: Range<Int64>
        let content: ModelContent
        /// The distance of the bytes from their right offset; anything but zero is corruption.
        let shift: Int64
        /// See ``Claim/mark``.
        var mark: UInt8
    }

    /// The resource that the manifest records; absent until a part is prepared.
    private(set) var resource: RemoteResource?
    /// The URL that the manifest names as its reference.
    private var url = 0
    /// The resource that the run assumes, which the manifest may not record yet.
    private var current: RemoteResource?
    private(set) var runs: [Run] = []
    private var durable: [Run] = []
    /// Counts withdrawals, so that a sync under way does not cover bytes written after one.
    private(set) var generation = 0
    /// The file with the final name.
    private(set) var finished: Finished?
    /// Whether this run ignores the finished file, and replaces it at the end.
    var replacesFinished = false

    struct Finished: Hashable {
        /// Absent for an empty file.
        let content: ModelContent?
        let length: Int64
        var record: RemoteResource?
    }

    /// Writes bytes; returns whether none of them were written before.
    mutating func write(_ range: Range<Int64>, _ content: ModelContent, shift: Int64, mark: UInt8) -> Bool {
        let isFree = !self.runs.contains { $0.range.overlaps(range) }
        let neighbour = self.runs.firstIndex {
            $0.range.upperBound == range.lowerBound && $0.content == content && $0.shift == shift && $0.mark == mark
        }
        if let neighbour {
            self.runs[neighbour].range = self.runs[neighbour].range.lowerBound..<range.upperBound
        } else {
            self.runs.append(Run(range: range, content: content, shift: shift, mark: mark))
        }
        return isFree
    }

    /// The content of the byte on disk; `nil` if none is written.
    func content(at offset: Int64) -> ModelContent? {
        self.runs.last { $0.range.contains(offset) }?.content
    }

    /// - Parameter url: The URL that the run requests.
    mutating func perform(_ preparation: Preparation, url: Int) {
        self.current = preparation.resource
        if preparation.mode == .fresh || !preparation.keepsRecord {
            self.resource = preparation.resource
            self.url = url
        }
        switch preparation.mode {
        case .fresh:
            self.runs = []
            self.durable = []
        case .adopted: self.adopt(self.runs)
        case .adoptedUp(let limit): self.adopt(Self.clipped(self.runs, to: limit))
        }
    }

    /// Replaces marks that are numbers of sources, because this run numbers its sources anew.
    private mutating func adopt(_ runs: [Run]) {
        self.runs = runs
        for mark in Set(runs.map(\.mark)).sorted() where mark > 0 && mark < Self.freeMarks.lowerBound {
            self.replace(mark: mark)
        }
        self.durable = self.runs
    }

    /// Marks that are not numbers of sources.
    private static let freeMarks = UInt8(201)...UInt8.max

    private mutating func replace(mark: UInt8) {
        let used = Set(self.runs.map(\.mark))
        let free = Self.freeMarks.first { !used.contains($0) } ?? .max
        for index in self.runs.indices where self.runs[index].mark == mark { self.runs[index].mark = free }
    }

    /// Withdraws bytes that are no longer trusted, and records which source defines the resource.
    mutating func perform(_ revision: Revision, url: Int) {
        for range in revision.withdrawn {
            self.runs = Self.without(range, self.runs)
            self.durable = Self.without(range, self.durable)
        }
        self.generation += 1
        if revision.remarks { self.replace(mark: 0) }
        self.current = revision.resource
        guard !revision.keepsRecord else { return }
        self.resource = revision.resource
        self.url = url
    }

    private static func without(_ range: Range<Int64>, _ runs: [Run]) -> [Run] {
        runs.flatMap { run in
            [run.range].subtracting([range]).map {
                Run(range: $0, content: run.content, shift: run.shift, mark: run.mark)
            }
        }
    }

    mutating func makeDurable(_ snapshot: [Run], generation: Int) -> Int64 {
        // Bytes withdrawn since may have been written anew: those are not the bytes that were synced.
        guard generation == self.generation else { return 0 }
        self.durable = snapshot
        return snapshot.reduce(0) { $0 + Int64($1.range.count) }
    }

    /// Drops the claims that were not durable, after a failed sync.
    mutating func forgetVolatile() {
        self.runs = self.durable
        self.generation += 1
    }

    /// Withdraws all claims that extend beyond the offset. A claim may begin as early as its block.
    mutating func forget(from offset: Int64) {
        let block = BlockLayout.blockEnd(after: offset) - BlockLayout.blockLength
        let isSplit = { (run: Run) in run.range.lowerBound < offset && run.range.upperBound > offset }
        self.runs = Self.clipped(self.runs, to: self.runs.contains(where: isSplit) ? block : offset)
        self.durable = Self.clipped(self.durable, to: self.durable.contains(where: isSplit) ? block : offset)
        self.generation += 1
    }

    private static func clipped(_ runs: [Run], to limit: Int64) -> [Run] {
        runs.filter { $0.range.lowerBound < limit }.map {
            Run(range: $0.range.clamped(to: 0..<limit), content: $0.content, shift: $0.shift, mark: $0.mark)
        }
    }

    mutating func discard() {
        let finished = self.finished
        self = ModelDisk()
        self.finished = finished
    }

    /// Gives the part file its final name.
    mutating func finish() {
        let length = self.runs.reduce(0) { $0 + Int64($1.range.count) }
        let finished = Finished(content: self.runs.first?.content, length: length, record: self.current)
        self.discard()
        self.finished = finished
    }

    /// Drops the resource's name, which an older version of segdl did not store.
    mutating func forgetNames() {
        self.resource?.locator = .unrecorded
        self.finished?.record?.locator = .unrecorded
    }

    /// What the next run finds.
    ///
    /// - Parameter url: The URL that the next run requests.
    func survey(length: Int64?, url: Int, salt: UInt64) -> Survey {
        if let finished, !self.replacesFinished {
            let record = finished.record?.stored(salt: salt)
            return .existing(ExistingFile(.init(length: finished.length), record: record))
        }
        // An empty file has no manifest.
        guard let resource, let length, length > 0 else { return .nothing }
        var missing: [Range<Int64>] = []
        var offset: Int64 = 0
        for range in self.runs.map(\.range).sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if range.lowerBound > offset { missing.append(offset..<range.lowerBound) }
            offset = max(offset, range.upperBound)
        }
        if offset < length { missing.append(offset..<length) }
        let marks = Set(self.runs.map(\.mark)).subtracting([0]).sorted()
        return .partial(
            SavedPartial(
                resource: resource.stored(salt: salt), completeLength: length, missing: missing,
                reference: url == self.url ? .first : nil,
                marked: marks.map { mark in
                    MarkedRanges(mark: mark, ranges: self.runs.filter { $0.mark == mark }.map(\.range).merged())
                }))
    }

    /// What is wrong with the file that is about to be placed; `nil` if nothing is.
    func flaw(length: Int64, lengths: [Int64]) -> String? {
        var offset: Int64 = 0
        for run in self.runs.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
            guard run.range.lowerBound == offset else {
                return run.range.lowerBound < offset ? "byte \(offset) was written twice" : "byte \(offset) is a hole"
            }
            guard run.shift == 0 else { return "bytes \(run.range) are \(run.shift) bytes off" }
            guard run.content == self.runs[0].content else {
                return "bytes of \(self.runs[0].content) and \(run.content) meet in one file"
            }
            offset = run.range.upperBound
        }
        guard let version = self.runs.first?.content.version else {
            return lengths.contains(0) ? nil : "nothing was written"
        }
        guard offset == length else { return "it has \(offset) bytes but is placed with length \(length)" }
        return offset == lengths[version] ? nil : "it has \(offset) of \(lengths[version]) bytes"
    }
}

extension RemoteResource {
    /// The resource as read back from disk.
    fileprivate func stored(salt: UInt64) -> RemoteResource {
        var stored = self
        stored.locator = self.locator.map { $0.fingerprint(salt: salt).map { .recorded($0) } ?? .unrecorded }
        return stored
    }
}
