/// A fleet of tasks of one job, and the origin that all of them fetch from.
///
/// The limits grow with the fleet, so that the fluid optimum of the same scenario is about the same for every size and
/// what remains is what does not scale.
package struct FleetScenario: Sendable {
    /// The limit of the origin that decides how long the job takes.
    package enum Limit: String, CaseIterable, Sendable {
        /// The bandwidth, shared equally by connections.
        case bandwidth
        /// The bandwidth, shared equally by client addresses. The shards of a node have one address.
        case clients
        /// The number of requests served at once: others are answered with 503.
        case connections
        /// The number of requests of one address served at once: others are answered with 503.
        case clientConnections = "client-connections"
        /// The number of requests per second: others are answered with 429.
        case rate
        /// The number of requests in each half minute: others are answered with 429 and a `Retry-After` until the next.
        case quota
        /// As `bandwidth`. For 30 s the origin answers 503 with `Retry-After: 30`, and at all times it answers more
        /// requests per second than twice those that the bandwidth allows with 429.
        case overload
        /// As `bandwidth`. For 30 s the origin is down: connections are reset, and refused.
        case restart
        /// No limit, but nothing listens at the host of the first files of each task.
        case deadHost = "dead-host"
        /// No limit, but the first files of each task are always answered with 503.
        case badFiles = "bad-files"
        /// No limit, but the first request of each task is answered with 503.
        case earlyRefusal = "early-refusal"

        /// Whether it is a fault of a few files or requests, which must not delay the others. What a process alone needs is
        /// then the measure.
        package var isFault: Bool {
            switch self {
            case .deadHost, .badFiles, .earlyRefusal: true
            case .bandwidth, .clients, .connections, .clientConnections, .rate, .quota, .overload, .restart: false
            }
        }

        /// The files of each task, from the first, that are never served.
        package var filesBad: Int {
            switch self {
            case .deadHost: 10
            case .badFiles: 2
            case .bandwidth, .clients, .connections, .clientConnections, .rate, .quota, .overload, .restart,
                .earlyRefusal:
                0
            }
        }
    }

    package let limit: Limit
    package let shards: Int
    /// Files that each shard fetches.
    package let files: Int
    /// The length of each file in bytes.
    package let length: Int64
    /// The share of the nodes that die in each minute.
    package var deaths = 0.0
    /// The time in seconds from the death of a node until its tasks are started elsewhere.
    package var restartDelay = 15.0
    /// The tasks are started at random in this time, in seconds.
    package var startSpread = 1.0

    /// Whether each task decides as a process of its own, without the rules for tasks of a job: to see what they bring.
    package var isAlone = false

    package init(_ limit: Limit, shards: Int, files: Int = 60, length: Int64 = 1 << 20) {
        (self.limit, self.shards, self.files, self.length) = (limit, shards, files, length)
    }

    // MARK: What the scenario has in common for all sizes

    /// Tasks on one node, which have one address.
    package static let shardsPerNode = 5
    package var nodes: Int { (self.shards + Self.shardsPerNode - 1) / Self.shardsPerNode }

    /// `-x` of the job: the default.
    static let connectionsPerHost: Int64 = 16

    /// A round trip, in seconds.
    static let roundTrip = 0.04
    /// The origin notices after this time in seconds that a node is gone: nginx's `send_timeout`.
    static let clientTimeout = 60.0
    /// When the origin stops serving, and for how long, in seconds.
    static let outageAt = 60.0
    static let outage = 30.0
    /// The period of a quota, in seconds.
    static let quotaPeriod = 30.0
    /// The time in seconds that the origin's limit needs for one file of each shard.
    static let secondsPerFile = 10.0

    private var bytes: Double { Double(self.shards * self.files) * Double(self.length) }
    private var requests: Double { Double(self.shards * self.files) }

    /// Bytes per second of the origin.
    var capacity: Double {
        switch self.limit {
        case .bandwidth, .clients, .overload, .restart:
            Double(self.shards) * Double(self.length) / Self.secondsPerFile
        case .connections, .clientConnections, .rate, .quota, .deadHost, .badFiles, .earlyRefusal: .infinity
        }
    }

    /// Bytes per second of one connection, or of one address if those are treated equally.
    var flowMax: Double {
        switch self.limit {
        // A place serves twice as many files as there are shards for each.
        case .connections: Double(self.length) * 2 / Self.secondsPerFile
        case .clientConnections:
            Double(self.length) * Double(Self.shardsPerNode) / Double(Self.placesPerClient) / Self.secondsPerFile
        // 10 MiB/s: the others receive a file in a tenth of a second.
        case .bandwidth, .overload, .restart, .rate, .quota, .deadHost, .badFiles, .earlyRefusal: Double(10 << 20)
        case .clients: Double(10 << 20) * Double(Self.shardsPerNode)
        }
    }

    static let placesPerClient = 2
    var places: Int? { self.limit == .connections ? max(self.shards / 2, 1) : nil }
    var placesPerClient: Int? { self.limit == .clientConnections ? Self.placesPerClient : nil }

    /// Requests per second, and how many of them may come at once.
    var requestRate: Double? {
        switch self.limit {
        case .rate: Double(self.shards) / Self.secondsPerFile
        case .overload: 2 * Double(self.shards) / Self.secondsPerFile
        case .bandwidth, .clients, .connections, .clientConnections, .quota, .restart, .deadHost, .badFiles,
            .earlyRefusal:
            nil
        }
    }

    /// Requests that may come at once: those of a second, and at least ten.
    var burst: Double { max(self.requestRate ?? 0, 10) }

    /// Requests in each period.
    var quota: Int? {
        self.limit == .quota ? Int(Double(self.shards) * Self.quotaPeriod / Self.secondsPerFile) : nil
    }

    var hasOutage: Bool { self.limit == .overload || self.limit == .restart }

    /// The least time in seconds in which the origin could deliver all files within its limits: as if requests and bytes
    /// were a fluid of which it gives as much as it may at every moment, without latency, from the first start on.
    package var optimum: Double {
        var time = 0.0
        if self.capacity < .infinity { time = self.bytes / self.capacity }
        if let places { time = max(time, self.bytes / (Double(places) * self.flowMax)) }
        if let placesPerClient {
            let busiest = min(Self.shardsPerNode, self.shards)
            let each = Double(busiest * self.files) * Double(self.length)
            time = max(time, each / (Double(min(placesPerClient, busiest)) * self.flowMax))
        }
        if let requestRate {
            time = max(time, (self.requests - self.burst) / requestRate)
        }
        if let quota {
            let periods = (self.requests / Double(quota)).rounded(.up)
            time = max(time, (periods - 1) * Self.quotaPeriod)
        }
        time = max(time, Double(self.files) * Double(self.length) / self.flowMax)
        return time + (self.hasOutage && time > Self.outageAt ? Self.outage : 0)
    }
}
