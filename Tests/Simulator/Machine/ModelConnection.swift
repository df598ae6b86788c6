import SegmentedDownloadCore

/// One connection of ``MachineWorld``: it does what the engine's segment fetcher does, one move at a time.
struct ModelConnection {
    enum Phase: Hashable {
        /// The request is sent; the head arrives at `headAt`, if ever.
        case asking
        /// The head or a reached limit is reported; the machine must answer.
        case waiting
        case receiving
        /// The last bytes are written and the end is reported.
        case over
    }

    /// The bytes that really arrive, in the coordinates of the origin's file.
    struct Body: Hashable {
        let content: ModelContent
        let start: Int64
        let end: Int64
    }

    let download: DownloadID
    let order: FetchOrder
    var phase = Phase.asking
    /// Absent if no head ever arrives.
    var headAt: Duration?
    var body: Body?
    /// The end of the body according to the response's head.
    var responseEnd: Int64?
    /// Where the fetcher assumes the body to begin.
    var bodyStart: Int64
    /// The offset of the body's next byte, as the fetcher counts.
    var offset: Int64
    /// The next byte to write.
    var position: Int64
    var limit: Int64
    var bytesReceived: Int64 = 0
    var isRevoked = false
    /// Whether the lease was stopped or revoked: the machine no longer counts it.
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

    /// The bytes it may still write without asking.
    var window: Range<Int64> { self.position..<max(self.position, self.limit) }
}
