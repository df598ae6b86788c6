/// The decisions of an origin about requests: whether it serves them.
struct FleetOrigin {
    enum Answer: Hashable {
        case served
        /// Seconds of `Retry-After`, if it is sent.
        case refused(status: Int, retryAfter: Int?)
        /// Nothing listens.
        case unreachable
    }

    private let scenario: FleetScenario
    private var placesUsed = 0
    private var placesUsedBy: [Int]
    private var isOut = false
    /// Requests that may come at once, at the time below.
    private var tokens: Double
    private var tokensAt = 0.0
    /// Requests served in the current period.
    private var quotaUsed = 0
    private var period = 0

    init(_ scenario: FleetScenario) {
        self.scenario = scenario
        self.placesUsedBy = Array(repeating: 0, count: scenario.nodes)
        self.tokens = scenario.burst
    }

    mutating func beginOutage() { self.isOut = true }
    mutating func endOutage() { self.isOut = false }

    /// Decides about a request of a client address at a time in seconds. What is served occupies a place.
    mutating func answer(_ client: Int, at now: Double) -> Answer {
        if self.isOut {
            return self.scenario.limit == .restart
                ? .unreachable : .refused(status: 503, retryAfter: Int(FleetScenario.outage))
        }
        if let places = self.scenario.places, self.placesUsed >= places {
            return .refused(status: 503, retryAfter: nil)
        }
        if let places = self.scenario.placesPerClient, self.placesUsedBy[client] >= places {
            return .refused(status: 503, retryAfter: nil)
        }
        if let rate = self.scenario.requestRate {
            self.tokens = min(self.tokens + (now - self.tokensAt) * rate, self.scenario.burst)
            self.tokensAt = now
            guard self.tokens >= 1 else { return .refused(status: 429, retryAfter: nil) }
            self.tokens -= 1
        }
        if let quota = self.scenario.quota {
            let current = Int(now / FleetScenario.quotaPeriod)
            if current != self.period { (self.period, self.quotaUsed) = (current, 0) }
            guard self.quotaUsed < quota else {
                let wait = Double(current + 1) * FleetScenario.quotaPeriod - now
                return .refused(status: 429, retryAfter: Int(wait.rounded(.up)))
            }
            self.quotaUsed += 1
        }
        self.placesUsed += 1
        self.placesUsedBy[client] += 1
        return .served
    }

    /// A client of another address appears.
    mutating func addClient() { self.placesUsedBy.append(0) }

    mutating func free(_ client: Int) {
        self.placesUsed -= 1
        self.placesUsedBy[client] -= 1
    }
}
