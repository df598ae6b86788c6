/// What a download has counted in this run.
struct TransferCounts: Hashable, Sendable {
    private(set) var requests = 0
    private(set) var bytesFetched: Int64 = 0
    /// The largest number of connections in use at the same time.
    private(set) var connectionsPeak = 0

    /// - Parameter connections: The number in use now.
    mutating func add(requests: Int = 0, bytesFetched: Int64 = 0, connections: Int = 0) {
        self.requests += requests
        self.bytesFetched += bytesFetched
        self.connectionsPeak = max(self.connectionsPeak, connections)
    }
}
