/// How many connections may be open, in all and to each host, and what a host that refuses has taught us.
package struct ConcurrencyBudget: Hashable, Sendable {
    private struct Host: Hashable {
        /// Connections in use, asked for or answered.
        var active = 0
        /// Of those, the ones the origin has accepted.
        var accepted = 0
        /// How many the origin is believed to allow, absent while it refused none.
        var ceiling: Int?
        /// No request before this time.
        var closedUntil: Duration = .zero
        /// One connection above the ceiling may be tried from this time on.
        var probeAt: Duration?
        /// Whether such a trial is out.
        var isTrying = false
        /// Trials refused in a row, for their spacing.
        var refusals = 0
    }

    /// The first wait before one more connection is tried than an origin allowed.
    package static let probeDelay: Duration = .seconds(1)

    /// The longest such wait.
    package static let probeDelayMax: Duration = .seconds(60)

    /// The longest `Retry-After` that is believed of a host: a download that will not wait so long fails by itself, and
    /// the others must not wait for ever.
    package static let retryAfterMax: Duration = .seconds(600)

    package private(set) var connectionsMax: Int
    package private(set) var connectionsPerHostMax: Int
    private var active = 0
    /// Looked up by key only, never iterated.
    private var hosts: [String: Host] = [:]

    package init(connectionsMax: Int, connectionsPerHostMax: Int) {
        precondition(connectionsMax > 0 && connectionsPerHostMax > 0)
        self.connectionsMax = connectionsMax
        self.connectionsPerHostMax = connectionsPerHostMax
    }

    /// Allows more, or fewer. What is open beyond the new limits is not forgotten: nothing is allowed until enough of it is
    /// given back.
    package mutating func update(connectionsMax: Int, connectionsPerHostMax: Int) {
        precondition(connectionsMax > 0 && connectionsPerHostMax > 0)
        self.connectionsMax = connectionsMax
        self.connectionsPerHostMax = connectionsPerHostMax
    }

    /// How long a host that counts its connections is given to notice that we closed one, before another is opened.
    package static let closingDelay: Duration = .milliseconds(100)

    /// Whether a connection may be opened within what the host is known to allow: no trial of one more.
    package func allowsWithoutTrial(_ name: String, now: Duration) -> Bool {
        guard self.allows(name, now: now) else { return false }
        return self.hosts[name].map { $0.active < self.allowance($0) } ?? true
    }

    /// Why no connection to a host may be opened.
    package enum Shortage: Hashable, Sendable {
        /// All there are, are in use.
        case total
        /// All that the host allows, or may be asked for, are in use.
        case host
        /// The host is left alone for a while.
        case closed
    }

    /// What stands against a connection to the host, if anything does.
    package func shortage(_ name: String, now: Duration) -> Shortage? {
        guard !self.allows(name, now: now) else { return nil }
        guard let host = self.hosts[name] else { return .total }
        if now < host.closedUntil { return .closed }
        return host.active >= self.allowance(host) ? .host : .total
    }

    /// How many more connections there may be in all.
    package var free: Int { max(self.connectionsMax - self.active, 0) }

    /// How many more connections there may be to a host, as far as its own limits go.
    package func free(_ name: String) -> Int {
        self.hosts[name].map { max(self.allowance($0) - $0.active, 0) } ?? self.connectionsPerHostMax
    }

    /// How many connections a host may have, no trial among them.
    private func allowance(_ host: Host) -> Int { min(host.ceiling ?? .max, self.connectionsPerHostMax) }

    /// Whether a connection to the host may be opened now.
    package func allows(_ name: String, now: Duration) -> Bool {
        guard self.active < self.connectionsMax else { return false }
        guard let host = self.hosts[name] else { return true }
        guard now >= host.closedUntil else { return false }
        return host.active < self.allowance(host) || self.mayTryOneMore(host, now: now)
    }

    private func mayTryOneMore(_ host: Host, now: Duration) -> Bool {
        guard let ceiling = host.ceiling, host.active == ceiling, ceiling < self.connectionsPerHostMax,
            let probeAt = host.probeAt
        else { return false }
        return now >= probeAt
    }

    /// Takes a connection that ``allows(_:now:)`` granted.
    package mutating func reserve(_ name: String) {
        var host = self.hosts[name] ?? Host()
        if host.active >= self.allowance(host) {
            // One at a time: the next trial waits for this one's answer.
            host.probeAt = nil
            host.isTrying = true
        }
        host.active += 1
        self.active += 1
        self.hosts[name] = host
    }

    /// The origin began to answer with what was asked for.
    package mutating func accepted(_ name: String, now: Duration) {
        guard var host = self.hosts[name] else { return }
        host.accepted += 1
        if let ceiling = host.ceiling, host.accepted > ceiling {
            // One that allows all we may ask for has refused us nothing, should we come to ask for more.
            host.ceiling = host.accepted < self.connectionsPerHostMax ? host.accepted : nil
            host.refusals = 0
            host.isTrying = false
        }
        if host.ceiling != nil, host.probeAt == nil {
            host.probeAt = now + Self.probeDelay
        }
        self.hosts[name] = host
    }

    /// Whether the host allows fewer than we may ask for.
    private func hasLearned(_ host: Host) -> Bool { self.allowance(host) < self.connectionsPerHostMax }

    /// The origin refused one connection more than it already serves, or all of them.
    ///
    /// - Returns: whether others are being served, so that this is a matter of how many, not of whether.
    package mutating func refused(_ name: String, retryAfter: Duration?, now: Duration) -> Bool {
        guard var host = self.hosts[name] else { return false }
        let servesOthers = host.accepted > 0
        let asked = min(retryAfter ?? .zero, Self.retryAfterMax)
        // Connections refused together are one lesson; a refused trial is another.
        host.refusals = host.isTrying ? host.refusals + 1 : max(host.refusals, 1)
        host.isTrying = false
        host.ceiling = max(host.accepted, 1)
        let spacing = min(Self.probeDelay * (1 << min(host.refusals - 1, 6)), Self.probeDelayMax)
        host.probeAt = now + max(spacing, asked)
        if !servesOthers {
            host.closedUntil = max(host.closedUntil, now + asked)
        }
        self.hosts[name] = host
        return servesOthers
    }

    /// A connection taken by ``reserve(_:)`` is free again.
    ///
    /// - Parameter wasCut: whether it was closed in mid-body, which its host learns a moment later.
    package mutating func release(_ name: String, wasAccepted: Bool, wasCut: Bool = false, now: Duration) {
        guard var host = self.hosts[name], host.active > 0 else {
            preconditionFailure("released a connection that was not reserved")
        }
        host.active -= 1
        if wasCut, self.hasLearned(host) {
            host.closedUntil = max(host.closedUntil, now + Self.closingDelay)
        }
        if wasAccepted {
            host.accepted -= 1
        } else if host.isTrying {
            // A trial that got no answer at all taught nothing; another may be made.
            host.isTrying = false
            host.probeAt = now + Self.probeDelay
        }
        self.active -= 1
        self.hosts[name] = host
    }

    /// Connections in use now.
    package var inUse: Int { self.active }
}
