import Foundation
package import SegmentedDownloadCore

/// One network path to one server: the bytes that each connection receives, by Reno (RFC 5681) at one bottleneck.
///
/// A fluid model: bytes have no packets, losses strike in proportion to the bytes sent, and bytes arrive as they are
/// sent.
package struct Link {
    /// The properties of a path and its server. Rates are bytes per second, times seconds.
    package struct Model: CustomStringConvertible {
        package var roundTrip: Double
        /// The rate of all connections together.
        package var capacity: Double
        /// The server's limit for one connection.
        package var connectionCap = Double.infinity
        /// The share of packets lost, at any load.
        package var loss = 0.0
        /// Round trips before a new connection's request leaves: one for TCP, two with TLS 1.3.
        package var handshakes = 1.0
        /// The time the server takes before it answers.
        package var thinking = 0.0
        /// Requests that are served at once; the server answers more with 503.
        package var servedMax = Int.max
        /// The share of new connections at a twentieth of the speed.
        package var slowShare = 0.0
        /// The share of new connections that never deliver a byte.
        package var silentShare = 0.0

        package init(roundTrip: Double, capacity: Double) {
            self.roundTrip = roundTrip
            self.capacity = capacity
        }

        /// Draws a path from the range met in practice: from a machine next door to a phone on another continent.
        package init(using generator: inout SplitMix64) {
            func between(_ low: Double, _ high: Double) -> Double {
                low * pow(high / low, Double.random(in: 0...1, using: &generator))
            }
            func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }
            self.init(roundTrip: between(0.002, 0.3), capacity: between(5e5, 1.2e8))
            if oneIn(3) { self.connectionCap = self.capacity / between(1.5, 40) }
            if oneIn(3) { self.loss = between(1e-5, 1e-2) }
            if oneIn(2) { self.handshakes = 2 }
            if oneIn(4) { self.thinking = between(0.005, 0.3) }
            if oneIn(8) { self.servedMax = Int.random(in: 2...12, using: &generator) }
            if oneIn(10) { self.slowShare = 0.1 }
            if oneIn(10) { self.silentShare = 0.05 }
        }

        /// The long-run rate of this number of connections. With packet loss by Mathis et al., "The Macroscopic
        /// Behavior of the TCP Congestion Avoidance Algorithm", 1997.
        package func rate(_ connections: Int) -> Double {
            let lossy = self.loss == 0 ? .infinity : Link.packet / self.roundTrip * (1.5 / self.loss).squareRoot()
            return min(
                self.capacity, Double(connections) * min(self.connectionCap, lossy, Link.windowMax / self.roundTrip))
        }

        package var description: String {
            var words = [String(format: "%.0f ms, %.2f MB/s", 1000 * self.roundTrip, self.capacity / 1e6)]
            if self.connectionCap < .infinity {
                words.append(String(format: "%.2f MB/s each", self.connectionCap / 1e6))
            }
            if self.loss > 0 { words.append(String(format: "%.3f %% lost", 100 * self.loss)) }
            if self.thinking > 0 { words.append(String(format: "thinks %.0f ms", 1000 * self.thinking)) }
            if self.servedMax < .max { words.append("serves \(self.servedMax)") }
            if self.slowShare > 0 { words.append("some slow") }
            if self.silentShare > 0 { words.append("some silent") }
            return words.joined(separator: ", ")
        }
    }

    private struct Flow {
        /// Bytes that may be in flight.
        var window = Link.windowFirst
        /// Below this the window doubles every round trip.
        var threshold = Double.infinity
        /// Losses before this time belong to the previous one.
        var cutUntil = 0.0
        /// The fraction of a byte that is not delivered yet.
        var fraction = 0.0
        var speed = 1.0
    }

    /// The payload of a full Ethernet frame, with TCP timestamps.
    package static let packet = 1448.0
    /// RFC 6928.
    private static let windowFirst = 10 * packet
    /// The maximum of Linux's receive buffer, tcp(7).
    package static let windowMax = 6e6
    private static let slowSpeed = 0.05

    package let model: Model
    private var generator: SplitMix64
    private var flows: [Flow] = []
    /// Open connections without a request.
    private var idle: [Int] = []
    private var now = 0.0

    package init(_ model: Model, seed: UInt64) {
        self.model = model
        self.generator = SplitMix64(seed: seed)
    }

    /// Takes an idle connection or opens one; returns the seconds until the first byte of its answer.
    package mutating func request() -> (flow: Int, delay: Double) {
        let answer = self.model.roundTrip + self.model.thinking
        if let flow = self.idle.popLast() { return (flow, answer) }
        var flow = Flow()
        // The first connection is never silent: there would be none to compare it with.
        let maybeSilent = Double.random(in: 0..<1, using: &self.generator) < self.model.silentShare
        if maybeSilent, !self.flows.isEmpty { flow.speed = 0 }
        if Double.random(in: 0..<1, using: &self.generator) < self.model.slowShare { flow.speed *= Self.slowSpeed }
        self.flows.append(flow)
        return (
            self.flows.count - 1, flow.speed == 0 ? .infinity : self.model.handshakes * self.model.roundTrip + answer
        )
    }

    package mutating func keep(_ flow: Int) { self.idle.append(flow) }

    /// The bytes in flight to a connection that the client closes.
    package func inFlight(_ flow: Int) -> Int64 {
        Int64(self.flows[flow].speed * min(self.flows[flow].window, self.model.connectionCap * self.model.roundTrip))
    }

    /// Advances the time; returns the bytes that each of these connections receives.
    package mutating func advance(by step: Double, _ active: [Int]) -> [Int64] {
        self.now += step
        let rates = self.rates(active)
        return zip(active, rates).map { flow, rate in
            self.grow(flow, rate: rate, step: step)
            self.flows[flow].fraction += rate * step
            let whole = self.flows[flow].fraction.rounded(.down)
            self.flows[flow].fraction -= whole
            return Int64(whole)
        }
    }

    /// Divides the bottleneck equally, except for connections that need less.
    private mutating func rates(_ active: [Int]) -> [Double] {
        let most = self.model.capacity * self.model.roundTrip
        // The queue holds as much as the path itself; beyond that, the connection with the largest window loses
        // packets.
        while active.reduce(0, { $0 + self.flows[$1].window }) > 2 * max(most, Self.packet * Double(2 * active.count)),
            let victim = active.filter({ self.flows[$0].cutUntil <= self.now }).max(by: {
                self.flows[$0].window < self.flows[$1].window
            })
        { self.cut(victim) }
        var rates = active.map { flow in
            min(self.flows[flow].window / self.model.roundTrip, self.model.connectionCap) * self.flows[flow].speed
        }
        var (left, rest) = (self.model.capacity, active.count)
        for place in rates.indices.sorted(by: { rates[$0] < rates[$1] }) {
            rates[place] = min(rates[place], left / Double(rest))
            left -= rates[place]
            rest -= 1
        }
        return rates
    }

    private mutating func grow(_ flow: Int, rate: Double, step: Double) {
        let sent = rate * step / Self.packet
        if self.model.loss > 0, self.now >= self.flows[flow].cutUntil,
            Double.random(in: 0..<1, using: &self.generator) > pow(1 - self.model.loss, sent)
        {
            return self.cut(flow)
        }
        let roundTrips = step / self.model.roundTrip
        // A connection limited by the server does not fill its window.
        guard self.flows[flow].window <= 2 * self.model.connectionCap * self.model.roundTrip else { return }
        if self.flows[flow].window < self.flows[flow].threshold {
            self.flows[flow].window = min(self.flows[flow].window * exp2(roundTrips), self.flows[flow].threshold)
        } else {
            self.flows[flow].window += Self.packet * roundTrips
        }
        self.flows[flow].window = min(self.flows[flow].window, Self.windowMax)
    }

    private mutating func cut(_ flow: Int) {
        self.flows[flow].window = max(self.flows[flow].window / 2, 2 * Self.packet)
        self.flows[flow].threshold = self.flows[flow].window
        self.flows[flow].cutUntil = self.now + self.model.roundTrip
    }

    // MARK: The optimum

    /// The seconds that a transfer takes with the best number of connections, all opened at once, where every
    /// connection receives bytes until all have come. No connection is slow or silent.
    package static func optimum(_ model: Model, length: Int64, step: Double, seed: UInt64) -> Double {
        var model = model
        (model.slowShare, model.silentShare) = (0, 0)
        return [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].filter { $0 <= model.servedMax }
            .map { Self.fluid(model, connections: $0, length: length, step: step, seed: seed) }.min() ?? .infinity
    }

    private static func fluid(
        _ model: Model, connections: Int, length: Int64, step: Double, seed: UInt64
    ) -> Double {
        var link = Link(model, seed: seed)
        let requests = (0..<connections).map { _ in link.request() }
        link.now = requests[0].delay
        var left = length
        while left > 0 { left -= link.advance(by: step, requests.map(\.flow)).reduce(0, +) }
        return link.now
    }
}
