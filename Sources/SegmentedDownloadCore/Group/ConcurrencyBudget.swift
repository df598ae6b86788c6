/// The number of connections that may be open, in total and to each host.
///
/// It lowers the limit of a host that refuses connections, and later tries one more.
package struct ConcurrencyBudget: Hashable, Sendable {
    private struct Host: Hashable {
        /// Connections in use, including those whose response has not begun.
        var active = 0
        /// The connections among them that the origin has accepted.
        var accepted = 0
        /// The number of connections that the origin is assumed to allow, absent unless it has refused one.
        var ceiling: Int?
        /// No request is made before this time.
        var closedUntil: Duration = .zero
        /// No further download gets its first connection before this time.
        var pacedUntil: Duration = .zero
        /// The time from which one connection above the ceiling may be tried.
        var probeAt: Duration?
        /// Whether a connection above the ceiling is on trial.
        var isTrying = false
        /// Consecutive refusals, which determine the time until the next trial.
        var refusals = 0
        /// Whether it has answered any request.
        var hasAnswered = false
        /// Absent in a process that is no task of a job.
        var pace: RequestPace?
        /// Absent in a process that is no task of a job.
        var turns: PlaceTurns?
        /// The end of the last `Retry-After` that this process or another one received. No offer shortens it.
        var retryAfterEnd: Duration = .zero
    }

    /// The first delay before one connection more than the origin allowed is tried. It doubles after each refused
    /// trial.
    package static let probeDelay: Duration = .seconds(1)

    /// The longest delay between such trials.
    package static let probeDelayMax: Duration = .seconds(60)

    /// The longest `Retry-After` that is applied to a host. The download that gets a longer one fails at once, and the
    /// others do not wait.
    package static let retryAfterMax: Duration = .seconds(600)

    package private(set) var connectionsMax: Int
    package private(set) var connectionsPerHostMax: Int
    /// The tasks of the job that this process is one of; 1 without a job.
    private let tasks: Int
    /// For the delays of a task.
    private var generator = SplitMix64(seed: 0)
    private var active = 0
    /// Accessed only by key, never iterated, so that runs can be replayed.
    private var hosts: [String: Host] = [:]
    /// The hosts that have had a connection.
    private var names: [HostKey: String] = [:]
    /// The times before which other processes were told not to ask a host.
    private var closedElsewhere: [HostKey: Duration] = [:]
    /// The notices for other processes.
    private var notices: [HostNotice] = []

    /// - Parameter tasks: The tasks of the job that this process is one of. All of them use the same hosts.
    package init(connectionsMax: Int, connectionsPerHostMax: Int, tasks: Int = 1) {
        precondition(connectionsMax > 0 && connectionsPerHostMax > 0 && tasks > 0)
        self.tasks = tasks
        self.connectionsMax = connectionsMax
        self.connectionsPerHostMax = connectionsPerHostMax
    }

    /// Prepares for requests to a host that was not used before: a task of a job does not begin together with the others.
    package mutating func admit(_ name: String, seed: UInt64, now: Duration) {
        guard self.tasks > 1, self.hosts[name] == nil else { return }
        // Another sequence than that of the download with this seed.
        if self.hosts.isEmpty { self.generator = SplitMix64(seed: ~seed) }
        let pace = RequestPace(tasks: self.tasks)
        var host = Host()
        host.closedUntil = max(now, self.closedUntil(name)) + pace.delayAtStart(using: &self.generator)
        host.pace = pace
        host.turns = PlaceTurns()
        self.hosts[name] = host
        self.names[HostKey(name)] = name
    }

    /// Whether a host has answered any request, so that its name and address are right.
    package func hasAnswered(_ name: String) -> Bool { self.hosts[name]?.hasAnswered ?? false }

    /// Sets new limits. Connections above them stay open and are counted; none is allowed until enough of them are
    /// released.
    package mutating func update(connectionsMax: Int, connectionsPerHostMax: Int) {
        precondition(connectionsMax > 0 && connectionsPerHostMax > 0)
        self.connectionsMax = connectionsMax
        self.connectionsPerHostMax = connectionsPerHostMax
    }

    /// The delay before the next connection to a host with a known limit, after one was closed early. The host may
    /// still count the closed one.
    package static let closingDelay: Duration = .milliseconds(100)

    /// Whether a connection may be opened within the host's known limit, not as a trial of one more.
    package func allowsWithoutTrial(_ name: String, now: Duration) -> Bool {
        guard self.allows(name, now: now) else { return false }
        return self.hosts[name].map { $0.active < self.allowance($0) } ?? true
    }

    /// The reason why no connection to a host may be opened.
    package enum Shortage: Hashable, Sendable {
        /// The limit over all hosts is reached.
        case total
        /// The limit of the host is reached.
        case host
        /// The host is not contacted until a delay is over.
        case closed
    }

    /// The reason why no connection to the host may be opened now; nil if one may.
    package func shortage(_ name: String, now: Duration) -> Shortage? {
        guard !self.allows(name, now: now) else { return nil }
        guard let host = self.hosts[name] else { return now < self.closedUntil(name) ? .closed : .total }
        if now < self.closedUntil(name) { return .closed }
        return host.active >= self.allowance(host) ? .host : .total
    }

    /// The number of connections that may still be opened, over all hosts.
    package var free: Int { max(self.connectionsMax - self.active, 0) }

    /// The number of connections that may still be opened to a host within its own limits, without a trial.
    package func free(_ name: String) -> Int {
        self.hosts[name].map { max(self.allowance($0) - $0.active, 0) } ?? self.connectionsPerHostMax
    }

    /// The number of connections a host may have, without a trial.
    private func allowance(_ host: Host) -> Int { min(host.ceiling ?? .max, self.connectionsPerHostMax) }

    /// Whether a connection to the host may be opened now.
    ///
    /// - Parameter isFurther: Whether it is for a download that the host serves. The pace is that of downloads.
    package func allows(_ name: String, isFurther: Bool = false, now: Duration) -> Bool {
        guard self.active < self.connectionsMax else { return false }
        guard now >= self.closedUntil(name, isFurther: isFurther) else { return false }
        guard let host = self.hosts[name] else { return true }
        // A host that refused the last request is asked by one connection at a time.
        if let pace = host.pace, pace.isRefused, host.active > 0 { return false }
        return host.active < self.allowance(host) || self.mayTryOneMore(host, now: now)
    }

    /// No request is made to the host before this time.
    func closedUntil(_ name: String, isFurther: Bool = false) -> Duration {
        if let host = self.hosts[name] {
            return isFurther ? host.closedUntil : max(host.closedUntil, host.pacedUntil)
        }
        return self.closedElsewhere.isEmpty ? .zero : self.closedElsewhere[HostKey(name)] ?? .zero
    }

    private func mayTryOneMore(_ host: Host, now: Duration) -> Bool {
        guard let ceiling = host.ceiling, host.active == ceiling, ceiling < self.connectionsPerHostMax,
            let probeAt = host.probeAt
        else { return false }
        return now >= probeAt
    }

    /// Reserves a connection that ``allows(_:isFurther:now:)`` granted.
    package mutating func reserve(_ name: String, isFurther: Bool = false, now: Duration) {
        if self.hosts[name] == nil { self.names[HostKey(name)] = name }
        var host = self.hosts[name] ?? Host()
        if !isFurther, let pause = host.pace?.requested(now: now, using: &self.generator) {
            host.pacedUntil = now + pause
            self.note(.taken, of: name, until: host.turns?.requested(now: now))
        }
        if host.active >= self.allowance(host) {
            // One trial at a time: the next one waits for the answer to this one.
            host.probeAt = nil
            host.isTrying = true
        }
        host.active += 1
        self.active += 1
        self.hosts[name] = host
    }

    /// Records that the origin accepted a connection: its response began with a status other than a refusal.
    package mutating func accepted(_ name: String, now: Duration) {
        guard var host = self.hosts[name] else { return }
        host.accepted += 1
        host.hasAnswered = true
        host.pace?.accepted(now: now)
        host.turns?.accepted(now: now)
        if let ceiling = host.ceiling, host.accepted > ceiling {
            // A host that allows the configured maximum has no known limit of its own, should the maximum be raised.
            host.ceiling = host.accepted < self.connectionsPerHostMax ? host.accepted : nil
            host.refusals = 0
            host.isTrying = false
        }
        if host.ceiling != nil, host.probeAt == nil {
            host.probeAt = now + Self.probeDelay
        }
        self.hosts[name] = host
    }

    /// Whether the host's own limit is below the configured one.
    private func hasReducedLimit(_ host: Host) -> Bool { self.allowance(host) < self.connectionsPerHostMax }

    /// Records that the origin refused a connection.
    ///
    /// - Parameters:
    ///   - isResponse: Whether it answered, and did not only close the connection.
    ///   - delayFixed: The delay that the user chose, which replaces that of the pace.
    /// - Returns: Whether the origin serves other connections, so that the refusal concerns their number.
    package mutating func refused(
        _ name: String, retryAfter: Duration?, isResponse: Bool = true, delayFixed: Duration? = nil, now: Duration
    ) -> Bool {
        guard var host = self.hosts[name] else { return false }
        let servesOthers = host.accepted > 0
        host.hasAnswered = host.hasAnswered || isResponse
        let asked = retryAfter ?? .zero
        // The download that was refused fails.
        guard asked <= Self.retryAfterMax || servesOthers else {
            self.hosts[name] = host
            return false
        }
        // Several refusals at the same time count as one; a refused trial counts as another.
        host.refusals = host.isTrying ? host.refusals + 1 : max(host.refusals, 1)
        host.isTrying = false
        host.ceiling = max(host.accepted, 1)
        let spacing = min(Self.probeDelay * (1 << min(host.refusals - 1, 6)), Self.probeDelayMax)
        host.probeAt = now + max(spacing, min(asked, Self.retryAfterMax))
        if !servesOthers {
            let paced = host.pace?.refused(asked: retryAfter, now: now, using: &self.generator)
            let delay = max(delayFixed ?? paced ?? asked, asked)
            host.closedUntil = max(host.closedUntil, now + delay)
            if delayFixed != nil { host.pacedUntil = host.closedUntil }
            if retryAfter != nil { host.retryAfterEnd = max(host.retryAfterEnd, now + asked) }
            if host.turns != nil {
                let asksAt = retryAfter == nil && now >= host.retryAfterEnd ? host.closedUntil : nil
                host.turns?.refused(asksAt: asksAt, now: now)
                self.note(.waiting, of: name, until: asksAt)
            }
        }
        self.hosts[name] = host
        return servesOthers
    }

    /// Records that the origin refuses one file, while it serves others.
    package mutating func refusedFile(_ name: String) { self.hosts[name]?.hasAnswered = true }

    /// Whether the origin serves a connection.
    package func serves(_ name: String) -> Bool { self.hosts[name]?.accepted ?? 0 > 0 }

    /// Records that a connection to a host that serves no other one failed before an answer. A host that has never
    /// answered may be misspelled: each download finds that out by itself, within seconds.
    package mutating func unreachable(_ name: String, now: Duration) {
        guard var host = self.hosts[name], host.hasAnswered,
            let delay = host.pace?.unreachable(using: &self.generator)
        else { return }
        host.closedUntil = max(host.closedUntil, now + delay)
        self.hosts[name] = host
    }

    /// Applies notices of other processes of this machine.
    package mutating func noticed(_ notices: [HostNotice], now: Duration) {
        self.closedElsewhere = self.closedElsewhere.filter { $0.value > now }
        // Refusals last: an offer does not shorten a wait for which a host has asked.
        for notice in notices where notice.kind != .refusal { self.noticedPlace(notice, now: now) }
        for notice in notices where notice.kind == .refusal { self.noticedRefusal(notice, now: now) }
    }

    /// Applies a refusal that another process received.
    ///
    /// A host that serves no connection of this process is not asked before the stated time. One that does gets no
    /// additional connection before it: the other process was refused because of all of them together.
    private mutating func noticedRefusal(_ notice: HostNotice, now: Duration) {
        let until = min(notice.until, now + Self.retryAfterMax)
        let isKnown = self.closedElsewhere[notice.host] == until
        self.closedElsewhere[notice.host] = until
        guard let name = self.names[notice.host], var host = self.hosts[name] else { return }
        host.retryAfterEnd = max(host.retryAfterEnd, until)
        if host.accepted > 0 {
            host.ceiling = host.accepted
            host.probeAt = max(host.probeAt ?? .zero, until)
        } else {
            // The tasks of a job have the same record, but do not ask at the same moment.
            let delay = isKnown ? nil : host.pace?.delayBehindRetryAfter(using: &self.generator)
            host.closedUntil = max(host.closedUntil, until + (delay ?? .zero))
            host.turns?.refused(asksAt: nil, now: now)
        }
        self.hosts[name] = host
    }

    /// Applies a notice of another task of the job about the places at a host. A process that is no task ignores it.
    private mutating func noticedPlace(_ notice: HostNotice, now: Duration) {
        guard let name = self.names[notice.host], var host = self.hosts[name], let pace = host.pace else { return }
        let time = host.turns?.noticed(
            notice.kind, until: notice.until, holdsPlaces: host.accepted > 0,
            pause: pace.delayOfTurn(using: &self.generator), now: now, using: &self.generator)
        if let time {
            // Connections that the host serves go on.
            if host.accepted > 0 { host.probeAt = time } else { (host.closedUntil, host.pacedUntil) = (time, .zero) }
        }
        self.hosts[name] = host
    }

    /// Leaves a place at the host to other tasks that wait, if it is their turn.
    private mutating func offerPlace(_ name: String, _ host: inout Host, now: Duration) {
        guard let end = host.turns?.released(asksAt: max(host.closedUntil, host.pacedUntil), now: now) else { return }
        if host.accepted > 0 {
            host.ceiling = host.accepted
            host.probeAt = end
        } else {
            host.closedUntil = max(host.closedUntil, end)
        }
        self.note(.offer, of: name, until: end)
    }

    /// Leaves all places to other tasks that wait. Call it when there will be no more requests.
    package mutating func leave(now: Duration) {
        // Sorted, so that runs can be replayed.
        for name in self.names.values.sorted() {
            self.note(.offer, of: name, until: self.hosts[name]?.turns?.left(now: now))
        }
    }

    private mutating func note(_ kind: HostNotice.Kind, of name: String, until: Duration?) {
        guard let until else { return }
        self.notices.append(HostNotice(kind, host: HostKey(name), until: until))
    }

    /// Returns the notices for other processes, and forgets them.
    package mutating func takeNotices() -> [HostNotice] {
        guard !self.notices.isEmpty else { return [] }
        defer { self.notices = [] }
        return self.notices
    }

    /// The time before which the host is not asked because it refused another process; nil if it may be asked, or if it
    /// serves a connection of this process.
    package func closedElsewhere(_ name: String, now: Duration) -> Duration? {
        guard let until = self.closedElsewhere[HostKey(name)], now < until, self.hosts[name]?.accepted ?? 0 == 0 else {
            return nil
        }
        return until
    }

    /// Releases a connection reserved by ``reserve(_:now:)``.
    ///
    /// - Parameter wasCut: Whether it was closed before the end of a body. The host notices that a moment later.
    package mutating func release(_ name: String, wasAccepted: Bool, wasCut: Bool = false, now: Duration) {
        guard var host = self.hosts[name], host.active > 0 else {
            preconditionFailure("released a connection that was not reserved")
        }
        host.active -= 1
        if wasCut, self.hasReducedLimit(host) {
            host.closedUntil = max(host.closedUntil, now + Self.closingDelay)
        }
        if wasAccepted {
            host.accepted -= 1
        } else {
            host.turns?.failed()
        }
        if !wasAccepted, host.isTrying {
            // A trial without any answer is inconclusive, so another one may follow.
            host.isTrying = false
            host.probeAt = now + Self.probeDelay
        }
        self.active -= 1
        if wasAccepted, !wasCut {
            let keeps = host.pace?.released(now: now) ?? false
            if keeps, host.turns?.lasts(now: now) ?? false { host.pacedUntil = .zero }
            self.offerPlace(name, &host, now: now)
        }
        self.hosts[name] = host
    }

    /// The number of connections in use.
    package var inUse: Int { self.active }
}
