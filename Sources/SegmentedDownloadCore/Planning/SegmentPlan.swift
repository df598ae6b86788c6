/// The resource as ordered, disjoint segments that cover it from the first byte to the last.
///
/// Every mutation preserves this invariant, so if all segments are complete, the file has no holes.
package struct SegmentPlan: Hashable, Sendable {
    /// The resource's length in bytes, absent until the end of a stream of unknown length is reached.
    package private(set) var completeLength: Int64?
    package private(set) var segments: [Segment] = []
    private var idNext = 0

    /// Makes a plan of one segment, or of none for an empty resource.
    package init(completeLength: Int64?) {
        self.completeLength = completeLength
        let upperBound = completeLength ?? .max
        if upperBound > 0 {
            self.append(0..<upperBound, isWritten: false)
        }
    }

    /// Makes a plan in which everything except `missing`, which is ordered and disjoint, is already written.
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

    /// The number of bytes written.
    package var bytesDone: Int64 {
        self.segments.reduce(0) { $0 + ($1.position - $1.lowerBound) }
    }

    /// The number of bytes missing, meaningless while the complete length is unknown.
    package var bytesMissing: Int64 {
        self.segments.reduce(0) { $0 + $1.remaining }
    }

    package var missing: [Range<Int64>] {
        self.segments.filter { !$0.isComplete }.map { $0.position..<$0.upperBound }
    }

    /// The first byte that is not written, or the end of the resource.
    package var frontier: Int64 {
        self.segments.first { !$0.isComplete }?.position ?? self.completeLength ?? 0
    }

    package func index(of id: Segment.ID) -> Int? {
        self.segments.firstIndex { $0.id == id }
    }

    package subscript(id: Segment.ID) -> Segment? {
        self.index(of: id).map { self.segments[$0] }
    }

    /// Records that a segment's bytes before `position` are written and resets its failures.
    ///
    /// The position never moves backwards and never passes the end of the segment.
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

    /// Counts a failure without progress. Returns the number of consecutive failures.
    package mutating func countFailure(_ id: Segment.ID) -> Int {
        guard let index = self.index(of: id) else { return 0 }
        self.segments[index].failures += 1
        return self.segments[index].failures
    }

    package mutating func postpone(_ id: Segment.ID, until time: Duration) {
        guard let index = self.index(of: id) else { return }
        self.segments[index].retryAt = time
    }

    /// Postpones all segments that no connection fetches.
    package mutating func postponeWaiting(until time: Duration) {
        for index in self.segments.indices where self.segments[index].lease == nil {
            self.segments[index].retryAt = max(self.segments[index].retryAt, time)
        }
    }

    /// Splits a segment at `offset`. The new back part is not leased.
    ///
    /// Returns the ID of the back part; nil if `offset` is not within the unwritten part or would leave the front part
    /// empty.
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

    /// Reserves an ID for a future segment.
    package mutating func reserveID() -> Segment.ID {
        defer { self.idNext += 1 }
        return Segment.ID(self.idNext)
    }

    /// Gives the part of a segment from `offset` on to the new, unleased segment `heir`.
    ///
    /// If `offset` is the segment's first byte, `heir` replaces the segment. Returns false, and changes nothing, if
    /// `offset` is not within the unwritten part.
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

    /// Extends the segment by the one after it, if that one is neither leased nor begun. Returns the new end.
    package mutating func absorbSuccessor(of id: Segment.ID) -> Int64? {
        guard let index = self.index(of: id), index + 1 < self.segments.count else { return nil }
        let successor = self.segments[index + 1]
        guard successor.lease == nil, successor.position == successor.lowerBound else { return nil }
        self.segments[index].upperBound = successor.upperBound
        self.segments.remove(at: index + 1)
        return successor.upperBound
    }

    /// Merges the complete, unleased segments at the beginning into the first one, which keeps its ID.
    package mutating func joinDone() {
        let count = self.segments.firstIndex { !$0.isComplete || $0.lease != nil } ?? self.segments.count
        guard count > 1 else { return }
        self.segments[0].upperBound = self.segments[count - 1].upperBound
        self.segments[0].position = self.segments[0].upperBound
        self.segments.removeSubrange(1..<count)
    }

    /// Marks written bytes as missing again.
    ///
    /// The part of a segment after the range keeps the segment's ID and lease, so that its fetch can continue.
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

    /// Discards progress at and after `offset`, because one stream will deliver everything from there.
    ///
    /// Everything before `offset` must be written.
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

    /// Sets the complete length of a stream that ended at `length`.
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
