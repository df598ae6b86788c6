/// The bytes of all responses of a ``FleetOrigin``: a fluid that is shared equally.
///
/// The unit of fairness is a group: one connection, or all connections of one client address. Every group receives at
/// the same rate, which is the capacity divided by the number of groups, but at most the group's own limit; within a
/// group, connections share equally. That is max-min fairness for equal limits. Because all groups receive equally, one
/// count of bytes describes all of them, and a change costs the logarithm of the number of groups.
struct FleetFlows {
    private struct Group {
        var flows: [Int] = []
        /// The bytes that each connection of the group would have received since the beginning.
        var each = 0.0
        /// ``FleetFlows/count`` when `each` was brought up to date.
        var count = 0.0
        /// Entries of the heap with another generation are out of date.
        var generation = 0
    }

    private struct Flow {
        var group = -1
        /// The group's `each` at which the connection has received everything that it may.
        var end = 0.0
        /// The group's `each` when the connection began.
        var start = 0.0
    }

    private struct Candidate {
        /// The value of ``FleetFlows/count`` at which the group's first connection is done.
        let count: Double
        let group: Int
        let generation: Int
    }

    /// Bytes per second of all groups together, and of one.
    private let capacity: Double
    private let groupMax: Double
    private var groups: [Group] = []
    private var groupsActive = 0
    private var flows: [Flow] = []
    /// The bytes that a group that was active all the time has received.
    private var count = 0.0
    /// In seconds.
    private var now = 0.0
    private var heap: [Candidate] = []

    init(capacity: Double, groupMax: Double) {
        (self.capacity, self.groupMax) = (capacity, groupMax)
    }

    private var rate: Double {
        self.groupsActive == 0 ? 0 : min(self.capacity / Double(self.groupsActive), self.groupMax)
    }

    mutating func advance(to now: Double) {
        guard now > self.now else { return }
        self.count += self.rate * (now - self.now)
        self.now = now
    }

    /// Begins a response. Its connection receives at most `length` bytes, until ``limit(_:to:)`` changes that.
    mutating func begin(_ flow: Int, in group: Int, length: Int64) {
        while self.groups.count <= group { self.groups.append(Group()) }
        while self.flows.count <= flow { self.flows.append(Flow()) }
        self.refresh(group)
        let start = self.groups[group].each
        self.flows[flow] = Flow(group: group, end: start + Double(length), start: start)
        if self.groups[group].flows.isEmpty { self.groupsActive += 1 }
        self.groups[group].flows.append(flow)
        self.post(group)
    }

    /// Sets how many bytes the connection receives in all.
    mutating func limit(_ flow: Int, to length: Int64) {
        let group = self.flows[flow].group
        guard group >= 0 else { return }
        self.refresh(group)
        self.flows[flow].end = self.flows[flow].start + Double(length)
        self.post(group)
    }

    /// Ends a response. Returns the bytes that it brought.
    @discardableResult
    mutating func end(_ flow: Int) -> Int64 {
        let received = self.received(flow)
        guard self.flows.indices.contains(flow), self.flows[flow].group >= 0 else { return 0 }
        let group = self.flows[flow].group
        self.flows[flow].group = -1
        self.groups[group].flows.removeAll { $0 == flow }
        if self.groups[group].flows.isEmpty {
            self.groupsActive -= 1
            self.groups[group].generation += 1
        } else {
            self.post(group)
        }
        return received
    }

    /// The bytes that a connection has received so far.
    mutating func received(_ flow: Int) -> Int64 {
        guard self.flows.indices.contains(flow), self.flows[flow].group >= 0 else { return 0 }
        let group = self.flows[flow].group
        self.refresh(group)
        // Half a byte may be missing because sums are rounded.
        return Int64(min(self.groups[group].each, self.flows[flow].end) - self.flows[flow].start + 0.5)
    }

    /// The time in seconds at which a connection has received all that it may; nil if none will.
    mutating func timeNext() -> Double? {
        self.dropStale()
        guard let first = self.heap.first else { return nil }
        return self.now + max(first.count - self.count, 0) / self.rate
    }

    /// A connection that has received all that it may by now. It is to be ended then.
    mutating func done() -> Int? {
        self.dropStale()
        // A hundredth of a byte: sums are rounded.
        guard let first = self.heap.first, first.count <= self.count + 1e-2 else { return nil }
        return self.groups[first.group].flows.min { self.flows[$0].end < self.flows[$1].end }
    }

    private mutating func refresh(_ group: Int) {
        let members = self.groups[group].flows.count
        if members > 0 { self.groups[group].each += (self.count - self.groups[group].count) / Double(members) }
        self.groups[group].count = self.count
    }

    private mutating func post(_ group: Int) {
        self.groups[group].generation += 1
        let flows = self.flows
        guard let end = self.groups[group].flows.lazy.map({ flows[$0].end }).min() else { return }
        let missing = max(end - self.groups[group].each, 0) * Double(self.groups[group].flows.count)
        self.push(Candidate(count: self.count + missing, group: group, generation: self.groups[group].generation))
    }

    private mutating func dropStale() {
        while let first = self.heap.first, self.groups[first.group].generation != first.generation { self.pop() }
    }

    private mutating func push(_ candidate: Candidate) {
        self.heap.append(candidate)
        var child = self.heap.count - 1
        while child > 0, self.heap[child].count < self.heap[(child - 1) / 2].count {
            self.heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private mutating func pop() {
        guard let last = self.heap.popLast(), !self.heap.isEmpty else { return }
        self.heap[0] = last
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < self.heap.count else { break }
            let right = left + 1
            let child = right < self.heap.count && self.heap[right].count < self.heap[left].count ? right : left
            guard self.heap[child].count < self.heap[parent].count else { break }
            self.heap.swapAt(child, parent)
            parent = child
        }
    }
}
