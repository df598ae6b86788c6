/// The resource as ordered, disjoint segments that cover it from the first byte to the last.
///
/// Every change keeps the invariant, so a plan whose segments are complete is a file without holes.
package struct SegmentPlan: Hashable, Sendable {
    /// The resource's length in bytes, absent until the end of a stream of unknown length is seen.
    package private(set) var completeLength: Int64?
    package private(set) var segments: [Segment] = []
    private var idNext = 0

    /// A plan of one segment.
    package init(completeLength: Int64?) {
        self.completeLength = completeLength
        let upperBound = completeLength ?? .max
        if upperBound > 0 {
            self.append(0..<upperBound, isWritten: false)
        }
    }

    /// A plan in which everything but `missing`, which is ordered and disjoint, is already written.
    package init(completeLength: Int64, missing: [Range<Int64>]) {
        self.completeLength = completeLength
        var offset: Int64 = 0
        for range in missing {
            precondition(range.lowerBound >= offset && range.upperBound <= completeLength && !range.isEmpty)
            if range.lowerBound > offset {
                self.append(offset..<range.lowerBound, isWritten: true)
            }
            self.append(range, isWritten: false)
            offset = range.upperBound
        }
        if offset < completeLength {
            self.append(offset..<completeLength, isWritten: true)
        }
    }

    package var isComplete: Bool {
        self.completeLength != nil && self.segments.allSatisfy(\.isComplete)
    }

    /// Bytes written so far.
    package var bytesDone: Int64 {
        self.segments.reduce(0) { $0 + ($1.position - $1.lowerBound) }
    }

    /// Bytes still missing; meaningless while the length is unknown.
    package var bytesMissing: Int64 {
        self.segments.reduce(0) { $0 + $1.remaining }
    }

    package var missing: [Range<Int64>] {
        self.segments.filter { !$0.isComplete }.map { $0.position..<$0.upperBound }
    }

    /// The first byte that is not written yet, or the end.
    package var frontier: Int64 {
        self.segments.first { !$0.isComplete }?.position ?? self.completeLength ?? 0
    }

    package func index(of id: Segment.ID) -> Int? {
        self.segments.firstIndex { $0.id == id }
    }

    package subscript(id: Segment.ID) -> Segment? {
        self.index(of: id).map { self.segments[$0] }
    }

    /// Notes that a segment's bytes up to `position` are written; never goes back nor past the segment's end.
    package mutating func advance(_ id: Segment.ID, to position: Int64) {
        guard let index = self.index(of: id) else { return }
        let segment = self.segments[index]
        guard position > segment.position else { return }
        self.segments[index].position = min(position, segment.upperBound)
        self.segments[index].failures = 0
    }

    package mutating func assign(_ id: Segment.ID, to lease: LeaseID?) {
        guard let index = self.index(of: id) else { return }
        self.segments[index].lease = lease
    }

    /// Counts a failure without progress and returns how many there are in a row now.
    package mutating func countFailure(_ id: Segment.ID) -> Int {
        guard let index = self.index(of: id) else { return 0 }
        self.segments[index].failures += 1
        return self.segments[index].failures
    }

    package mutating func postpone(_ id: Segment.ID, until time: Duration) {
        guard let index = self.index(of: id) else { return }
        self.segments[index].retryAt = time
    }

    /// Cuts a segment in two at `offset`; the new back part is unassigned. Returns its name.
    @discardableResult
    package mutating func split(_ id: Segment.ID, at offset: Int64) -> Segment.ID? {
        guard let index = self.index(of: id) else { return nil }
        let segment = self.segments[index]
        guard offset >= segment.position, offset > segment.lowerBound, offset < segment.upperBound else { return nil }
        let back = self.named(offset..<segment.upperBound, position: offset)
        self.segments[index].upperBound = offset
        self.segments.insert(back, at: index + 1)
        return back.id
    }

    /// A name that no segment has, for one to come.
    package mutating func reserveID() -> Segment.ID {
        defer { self.idNext += 1 }
        return Segment.ID(self.idNext)
    }

    /// What of a segment lies at and behind `offset` has the name `heir` from now on and is unassigned; where nothing lies before it,
    /// the segment's own name is gone. Returns whether there was anything.
    package mutating func cede(_ id: Segment.ID, from offset: Int64, to heir: Segment.ID) -> Bool {
        guard let index = self.index(of: id) else { return false }
        let segment = self.segments[index]
        guard offset >= segment.position, offset < segment.upperBound else { return false }
        var rest = Segment(id: heir, lowerBound: offset, position: offset, upperBound: segment.upperBound)
        rest.failures = segment.failures
        if offset > segment.lowerBound {
            self.segments[index].upperBound = offset
            self.segments.insert(rest, at: index + 1)
        } else {
            self.segments[index] = rest
        }
        return true
    }

    /// Joins the segment behind `id` to it, if nobody holds that one and none of it is written. Returns the new end.
    package mutating func absorbSuccessor(of id: Segment.ID) -> Int64? {
        guard let index = self.index(of: id), index + 1 < self.segments.count else { return nil }
        let successor = self.segments[index + 1]
        guard successor.lease == nil, successor.position == successor.lowerBound else { return nil }
        self.segments[index].upperBound = successor.upperBound
        self.segments.remove(at: index + 1)
        return successor.upperBound
    }

    /// Joins neighbours at the beginning that are complete and nobody's; the first one's name stays.
    package mutating func joinDone() {
        let count = self.segments.firstIndex { !$0.isComplete || $0.lease != nil } ?? self.segments.count
        guard count > 1 else { return }
        self.segments[0].upperBound = self.segments[count - 1].upperBound
        self.segments[0].position = self.segments[0].upperBound
        self.segments.removeSubrange(1..<count)
    }

    /// Makes written bytes missing again; whoever writes behind them in the same segment goes on with that.
    package mutating func reopen(_ range: Range<Int64>) {
        var segments: [Segment] = []
        for segment in self.segments {
            let written = segment.lowerBound..<segment.position
            let lost = written.clamped(to: range)
            guard !lost.isEmpty else {
                segments.append(segment)
                continue
            }
            if written.lowerBound < lost.lowerBound {
                segments.append(self.named(written.lowerBound..<lost.lowerBound, position: lost.lowerBound))
            }
            if lost.upperBound == segment.position, segment.lease == nil {
                segments.append(self.named(lost.lowerBound..<segment.upperBound, position: lost.lowerBound))
                continue
            }
            segments.append(self.named(lost, position: lost.lowerBound))
            if lost.upperBound < segment.upperBound {
                var rest = Segment(
                    id: segment.id, lowerBound: lost.upperBound, position: segment.position,
                    upperBound: segment.upperBound)
                rest.lease = segment.lease
                rest.failures = segment.failures
                rest.retryAt = segment.retryAt
                segments.append(rest)
            }
        }
        self.segments = segments
    }

    private mutating func named(_ range: Range<Int64>, position: Int64) -> Segment {
        Segment(id: self.reserveID(), lowerBound: range.lowerBound, position: position, upperBound: range.upperBound)
    }

    /// Forgets all that is written at and behind `offset`: one stream will carry everything from there.
    package mutating func truncate(to offset: Int64) {
        let upperBound = self.completeLength ?? .max
        self.segments = []
        if offset > 0 {
            self.append(0..<offset, isWritten: true)
        }
        if offset < upperBound {
            self.append(offset..<upperBound, isWritten: false)
        }
    }

    /// The end of a stream of unknown length was reached at `length`.
    package mutating func close(at length: Int64) {
        precondition(self.completeLength == nil)
        self.completeLength = length
        for index in self.segments.indices {
            self.segments[index].upperBound = min(self.segments[index].upperBound, length)
        }
    }

    private mutating func append(_ range: Range<Int64>, isWritten: Bool) {
        self.segments.append(
            Segment(
                id: Segment.ID(self.idNext),
                lowerBound: range.lowerBound,
                position: isWritten ? range.upperBound : range.lowerBound,
                upperBound: range.upperBound
            )
        )
        self.idNext += 1
    }
}
