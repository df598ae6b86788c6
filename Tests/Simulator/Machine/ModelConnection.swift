import SegmentedDownloadCore

/// One connection of ``MachineWorld``: it does what the engine's segment fetcher does, one move at a time.
struct ModelConnection {
    enum Phase: Hashable {
        /// Asked; the head comes at `headAt`, if ever.
        case asking
        /// The head, or a limit reached, has been reported: an answer must come.
        case waiting
        case receiving
        /// The last bytes are written and the end has been reported.
        case over
    }

    /// The bytes that really come, in the coordinates of the origin's file.
    struct Body: Hashable {
        let content: ModelContent
        let start: Int64
        let end: Int64
    }

    let download: DownloadID
    let order: FetchOrder
    var phase = Phase.asking
    /// Absent for a head that never comes.
    var headAt: Duration?
    var body: Body?
    /// Where the response's head said that the body ends.
    var responseEnd: Int64?
    /// Where the fetcher takes the body to begin.
    var bodyStart: Int64
    /// The next byte of the body, as the fetcher counts.
    var offset: Int64
    /// The next byte to be written.
    var position: Int64
    var limit: Int64
    var bytesReceived: Int64 = 0
    var isRevoked = false
    /// Whether it was told to stop, or revoked: the machine counts it no more.
    var isDismissed = false
    var isStalled = false
    var isDone = false

    init(download: DownloadID, order: FetchOrder, headAt: Duration?) {
        self.download = download
        self.order = order
        self.headAt = headAt
        self.bodyStart = order.request.lowerBound
        self.offset = order.request.lowerBound
        self.position = order.writesFrom
        self.limit = order.writesFrom
    }

    var observation: LeaseObservation {
        LeaseObservation(
            lease: self.order.lease, position: self.position, bytesReceived: self.bytesReceived, isWriting: false)
    }

    /// What it may still write without asking.
    var window: Range<Int64> { self.position..<max(self.position, self.limit) }
}
