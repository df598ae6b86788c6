/// What happens at a time in a ``FleetSimulation``. Small, because a hundred thousand wait at once.
struct FleetEvent: Hashable {
    enum Kind: UInt8 {
        /// The scheduler starts the task of a shard.
        case start
        /// A request reaches the origin, or finds that it is down.
        case arrival
        /// The head of a response, or a refused connection, reaches the shard.
        case head
        /// A fetch has ended.
        case ended
        case surveyed, prepared, checkpointed, placed
        /// The origin notices that the client of a response is gone.
        case placeFreed
        /// A node dies, with its shards and their connections.
        case death
        case outageBegins, outageEnds
    }

    /// In nanoseconds.
    let time: Int64
    /// Among events of one time, the one that was added first comes first.
    let number: Int
    let kind: Kind
    /// The number of the shard, of the connection, or of the node.
    let subject: Int32
    /// The download, or how often the connection's place was used.
    let detail: Int32
    /// The run of the shard that the event belongs to.
    let run: Int32
}

/// Events in the order of their times: a binary heap.
struct FleetEvents {
    private var heap: [FleetEvent] = []
    private var numberNext = 0

    var timeNext: Int64? { self.heap.first?.time }

    mutating func add(
        _ kind: FleetEvent.Kind, at time: Int64, _ subject: Int, detail: Int = 0, run: Int = 0
    ) {
        self.heap.append(
            FleetEvent(
                time: time, number: self.numberNext, kind: kind, subject: Int32(subject), detail: Int32(detail),
                run: Int32(run)))
        self.numberNext += 1
        var child = self.heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard Self.isBefore(self.heap[child], self.heap[parent]) else { break }
            self.heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func next() -> FleetEvent? {
        guard let first = self.heap.first, let last = self.heap.popLast() else { return nil }
        guard !self.heap.isEmpty else { return first }
        self.heap[0] = last
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < self.heap.count else { break }
            let right = left + 1
            let child =
                right < self.heap.count && Self.isBefore(self.heap[right], self.heap[left]) ? right : left
            guard Self.isBefore(self.heap[child], self.heap[parent]) else { break }
            self.heap.swapAt(child, parent)
            parent = child
        }
        return first
    }

    private static func isBefore(_ left: FleetEvent, _ right: FleetEvent) -> Bool {
        left.time == right.time ? left.number < right.number : left.time < right.time
    }
}
