import SegmentedDownloadCore

/// What is on one download's disk: which bytes of which content were written where, and what of it is durable.
struct ModelDisk {
    /// Bytes written by one lease in one go.
    struct Run: Hashable {
        var range: Range<Int64>
        let content: ModelContent
        /// How far the bytes lie from where they belong; anything but zero is corruption.
        let shift: Int64
        /// See ``Claim/mark``.
        var mark: UInt8
    }

    /// What the manifest says of the part file, absent until one is prepared.
    private(set) var resource: RemoteResource?
    /// The URL that the manifest names as its reference.
    private var url = 0
    /// What the run holds its file to be, which the manifest may not say yet.
    private var current: RemoteResource?
    private(set) var runs: [Run] = []
    private var durable: [Run] = []
    /// Counts withdrawals, so that a sync under way does not vouch for what was written since.
    private(set) var generation = 0
    /// The file that has the final name.
    private(set) var finished: Finished?
    /// Whether that one is overlooked by this run, and replaced in the end.
    var replacesFinished = false

    struct Finished: Hashable {
        /// Absent for an empty file.
        let content: ModelContent?
        let length: Int64
        var record: RemoteResource?
    }

    /// Whether the bytes were claimed by nobody before.
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

    /// What the byte on disk is of, absent where nothing is.
    func content(at offset: Int64) -> ModelContent? {
        self.runs.last { $0.range.contains(offset) }?.content
    }

    /// - Parameter url: which URL the run asks for.
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

    /// Marks that are numbers of sources become others: the sources of this run are numbered anew.
    private mutating func adopt(_ runs: [Run]) {
        self.runs = runs
        for mark in Set(runs.map(\.mark)).sorted() where mark > 0 && mark < Self.freeMarks.lowerBound {
            self.replace(mark: mark)
        }
        self.durable = self.runs
    }

    /// Marks that are no numbers of sources.
    private static let freeMarks = UInt8(201)...UInt8.max

    private mutating func replace(mark: UInt8) {
        let used = Set(self.runs.map(\.mark))
        let free = Self.freeMarks.first { !used.contains($0) } ?? .max
        for index in self.runs.indices where self.runs[index].mark == mark { self.runs[index].mark = free }
    }

    /// Withdraws what is not believed any more, and records who defines the resource.
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
            Run(range: $0.range.clamped(to: 0..<limit), content: $0.content, shift: $0.shift, mark: $0.mark)
        }
    }

    mutating func discard() {
        let finished = self.finished
        self = ModelDisk()
        self.finished = finished
    }

    /// The part file gets the final name.
    mutating func finish() {
        let length = self.runs.reduce(0) { $0 + Int64($1.range.count) }
        let finished = Finished(content: self.runs.first?.content, length: length, record: self.current)
        self.discard()
        self.finished = finished
    }

    /// An older version of segdl has made what there is: it stored no name of the resource.
    mutating func forgetNames() {
        self.resource?.locator = .unrecorded
        self.finished?.record?.locator = .unrecorded
    }

    /// What the next run finds.
    ///
    /// - Parameter url: which URL that one asks for.
    func survey(length: Int64?, url: Int, salt: UInt64) -> Survey {
        if let finished, !self.replacesFinished {
            let record = finished.record?.stored(salt: salt, keepsMalformed: false)
            return .existing(ExistingFile(length: finished.length, record: record, agreesWithDigests: nil))
        }
        // An empty file keeps no manifest.
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
                resource: resource.stored(salt: salt, keepsMalformed: true), completeLength: length, missing: missing,
                reference: url == self.url ? .first : nil,
                marked: marks.map { mark in
                    MarkedRanges(mark: mark, ranges: self.runs.filter { $0.mark == mark }.map(\.range).merged())
                }))
    }

    /// What is wrong with the file that is about to be placed, if anything.
    func flaw(length: Int64, lengths: [Int64]) -> String? {
        var offset: Int64 = 0
        for run in self.runs.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
            guard run.range.lowerBound == offset else {
                return run.range.lowerBound < offset ? "byte \(offset) was written twice" : "byte \(offset) is a hole"
            }
            guard run.shift == 0 else { return "bytes \(run.range) lie \(run.shift) from where they belong" }
            guard run.content == self.runs[0].content else {
                return "bytes of \(self.runs[0].content) and \(run.content) meet in one file"
            }
            offset = run.range.upperBound
        }
        guard let version = self.runs.first?.content.version else {
            return lengths.contains(0) ? nil : "nothing was written"
        }
        guard offset == length else { return "it has \(offset) bytes and is placed as \(length)" }
        return offset == lengths[version] ? nil : "it has \(offset) of \(lengths[version]) bytes"
    }
}

extension RemoteResource {
    /// As it is read back from disk. The record of a finished file has no validators that cannot be read.
    fileprivate func stored(salt: UInt64, keepsMalformed: Bool) -> RemoteResource {
        var stored = self
        stored.locator = self.locator.map { $0.fingerprint(salt: salt).map { .recorded($0) } ?? .unrecorded }
        if !keepsMalformed {
            stored.validator = Validator(entityTag: self.validator.entityTag, lastModified: self.validator.lastModified)
        }
        return stored
    }
}
