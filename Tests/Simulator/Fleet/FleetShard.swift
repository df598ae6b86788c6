import SegmentedDownloadCore

/// One task of a fleet. Its process decides with the production's state machines; its disk is a model.
struct FleetShard {
    /// A download of the current run.
    struct Download {
        let id: DownloadID
        let file: Int
        /// The bytes missing at the checkpoint under way.
        var missing: [Range<Int64>] = []
    }

    var node: Int
    /// The process; nil before the first start, between a death and the next start, and after the end.
    var machine: GroupStateMachine?
    /// Counts starts and deaths, so that events of an earlier process are recognized.
    var run = 0
    /// Files not given to the process yet, in reverse order.
    var waiting: [Int]
    var downloads: [Download] = []
    var idNext = 0
    /// The places of its connections in ``FleetSimulation``.
    var connections: [Int] = []
    /// The number of the tick that it awaits, and its distance in slots.
    var tickNext = 0
    var tickSlots = 0
    /// When something last happened, in nanoseconds.
    var changedAt: Int64 = 0
    /// What it reads of the other tasks of its node at the next tick.
    var notices: [HostNotice] = []
    /// Idle connections to the origin.
    var idle = 0
    /// The missing bytes of the files whose part is on disk, by file.
    var parts: [Int: [Range<Int64>]] = [:]

    var filesFailed = 0
    /// When the last file was complete, in nanoseconds.
    var completedAt: Int64 = 0
    /// Bytes of the files that are complete.
    var bytesDone: Int64 = 0
    /// In nanoseconds.
    var finishedAt: Int64?

    var refused = 0
    var served = 0
    /// Episodes: runs of refusals before a request is served.
    var episodes = 0
    var isInEpisode = false

    init(node: Int, files: Int) {
        self.node = node
        self.waiting = Array((0..<files).reversed())
    }

    mutating func noteRefused() {
        self.refused += 1
        if !self.isInEpisode { self.episodes += 1 }
        self.isInEpisode = true
    }

    mutating func noteServed() {
        self.served += 1
        self.isInEpisode = false
    }
}

/// A connection of a shard with one request.
struct FleetConnection {
    enum Phase: Hashable {
        /// The request is on its way, or its answer.
        case asking
        /// The shard decides about the head, or about a limit that was reached.
        case waiting
        case receiving
        /// It is closed or idle, and that is about to be reported.
        case ending(LeaseEnd)
        case free
    }

    var phase = Phase.free
    /// How often its place in the array was used.
    var use = 0
    var shard = 0
    var run = 0
    var node = 0
    var download = DownloadID(0)
    var order: FetchOrder?
    var answer = FleetOrigin.Answer.unreachable
    var holdsPlace = false
    /// The next byte of the response when the flow began.
    var offset: Int64 = 0
    /// The next byte to write.
    var position: Int64 = 0
    var limit: Int64 = 0
    var responseEnd: Int64 = 0
}
