/// What follows a failed request. ``RetryPolicy/decision(on:using:)`` alone makes it; Design.md shows it as a table.
package enum RetryDecision: Hashable, Sendable {
    /// The request is made again after the delay. A failure that is not counted concerns the other connections.
    case again(after: Duration, isCounted: Bool)
    /// The bytes are requested again once there is room: the server serves fewer connections at once. Not counted.
    ///
    /// The delay is the one to report; the budget decides when one more connection is tried.
    case fewerConnections(reporting: Duration)
    /// Another source is asked, and the one that failed may be asked again after the delay. Counted against the source.
    case elsewhere(after: Duration)
    /// The source is not asked any more.
    case leaveSource
    /// The download fails, or what was asked stays unknown.
    case giveUp
}

/// A request that failed, and what else is known when that is judged.
package struct FailedRequest: Hashable, Sendable {
    package enum Purpose: Hashable, Sendable {
        /// To find out what to fetch, or for a short document.
        case first
        /// For bytes of a segment.
        case bytes
        /// For bytes of a source that is compared with the reference.
        case sample
        /// For bytes of the reference that are compared with those of another source.
        case audit
        /// For the validator of a file that is complete.
        case confirmation
    }

    /// What the download's other connections do. For the first request, `silent` means that the host has other requests.
    package enum Others: Hashable, Sendable {
        case none
        /// They were accepted, and nothing has arrived lately. Otherwise no failure would ever be counted.
        case silent
        case served
    }

    package var purpose: Purpose
    package var failure: DownloadError
    /// The number of consecutive failures before this one, of the segment, or of the purpose if it has none.
    package var failures: Int
    /// Likewise, of the source.
    package var failuresOfSource = 0
    /// Whether the origin has answered in this run.
    package var hadContact = true
    /// The time since the last progress.
    package var waited: Duration = .zero
    /// Whether another source can be asked instead.
    package var hasAlternative = false
    package var others = Others.none
    /// Whether another response of the source is being received. It can go on to the end of the file.
    package var isServed = false
    /// Whether the source had another connection when the request was made, or has one.
    package var isAdditional = false
    /// Whether the source has served the file in this run.
    package var hasServed = false
    /// Whether the server has cut connections shortly before. It may refuse every request for a while, because there were too many.
    package var mayBeBanned = false
    /// Whether the group decides when the host is asked again after a refusal.
    package var isPaced = false

    package init(_ purpose: Purpose, _ failure: DownloadError, failures: Int) {
        (self.purpose, self.failure, self.failures) = (purpose, failure, failures)
    }

    /// Whether the failure may be one of this connection or its response only, because the source has another one, or had.
    ///
    /// - Parameters:
    ///   - failures: The number of earlier ones.
    ///   - retriesMax: The number that the user allows.
    fileprivate func isOfConnection(_ failures: Int, _ retriesMax: Int) -> Bool {
        switch self.failure.code {
        case .network, .tls, .auth, .protocol, .server:
            if self.isServed { return true }
            if self.isAdditional { return failures < RetryPolicy.additionalFailuresMax }
            return self.hasServed && !self.hasAlternative && !self.failure.isTransient
                && failures
                    < min(
                        self.mayBeBanned ? RetryPolicy.bannedFailuresMax : RetryPolicy.loneFailuresMax, retriesMax)
        default: return false
        }
    }

    /// Whether the failure concerns the number of connections: a refusal while others are open, or a broken connection
    /// while bytes arrive on others.
    fileprivate var isCrowded: Bool {
        guard self.failure.isTransient else { return false }
        return switch self.others {
        case .none: false
        case .silent: self.failure.isRefusal
        case .served: self.failure.isRefusal || self.failure.code == .network
        }
    }
}

extension RetryPolicy {
    /// 60 s after the last byte: how long the reference may refuse audits before another source takes its place, or without one a
    /// refusal counts as a failure. Many audits in a short time may exceed the server's limit although every one of them is right.
    package static let auditPatience: Duration = .seconds(60)

    /// 10: how often an additional request may fail while no other one brings bytes. Of requests made at the same time each is
    /// additional to the others, so a failure of the file would else never end.
    package static let additionalFailuresMax = 10

    /// 3: how often a source that has served the file in this run may fail for good without another connection. It may count
    /// a connection that has just broken for a second or so.
    package static let loneFailuresMax = 3

    /// 8: the same if the server has just cut connections. The delays add up to 46 s on average: bans of 10 to 30 s are usual.
    package static let bannedFailuresMax = 8

    /// Decides what follows a failed request.
    package func decision(on request: FailedRequest, using generator: inout SplitMix64) -> RetryDecision {
        let failure = request.failure
        let asked = failure.retryAfter ?? .zero
        switch request.purpose {
        case .first where request.hasAlternative: return self.decisionOnSource(request, using: &generator)
        case .first where request.isCrowded && asked > self.retryAfterMax:
            return .fewerConnections(reporting: self.delay(afterCrowd: request, using: &generator))
        case .first: break
        case .bytes:
            if request.isCrowded, failure.isRefusal {
                return .fewerConnections(reporting: self.delay(afterCrowd: request, using: &generator))
            }
            if request.isCrowded {
                return .again(
                    after: self.delay(after: request, request.failures, using: &generator), isCounted: false)
            }
            let failures = request.hasAlternative ? request.failuresOfSource : request.failures
            // What an additional request gets does not fail a file that another connection brings.
            if request.isOfConnection(request.failures, self.retriesMax), !self.allows(request, failures: failures + 1)
            {
                return .fewerConnections(reporting: self.delay(afterCrowd: request, using: &generator))
            }
            if request.hasAlternative { return self.decisionOnSource(request, using: &generator) }
        case .audit where failure.isRefusal && request.hasAlternative:
            let delay = max(asked, self.delayBase)
            return request.waited + delay < Self.auditPatience ? .again(after: delay, isCounted: false) : .leaveSource
        case .audit
        where failure.isRefusal && request.waited < Self.auditPatience && asked <= self.retryAfterMax:
            return .again(after: max(asked, self.delayBase), isCounted: false)
        case .sample, .audit:
            if !request.hasAlternative {
                guard asked <= self.retryAfterMax else { return .giveUp }
                if failure.isTransient, request.others == .served {
                    return .again(after: self.delayBase, isCounted: false)
                }
            }
            if request.isOfConnection(request.failuresOfSource, self.retriesMax),
                !self.allows(request, failures: request.failuresOfSource + 1)
            {
                return .again(after: self.delayBase, isCounted: !request.isServed)
            }
            // There is no segment against which the failure could be counted.
            return self.decisionOnSource(request, using: &generator)
        case .confirmation:
            let delay = max(asked, self.delayBase)
            let isRepeated =
                failure.isTransient && delay <= Confirmation.patience && self.retriesMax > 0
                && request.failures + 1 < Confirmation.attemptsMax
            return isRepeated ? .again(after: delay, isCounted: true) : .giveUp
        }
        guard self.allows(request, failures: request.failures + 1) else { return .giveUp }
        return .again(after: self.delay(after: request, request.failures + 1, using: &generator), isCounted: true)
    }

    private func decisionOnSource(
        _ request: FailedRequest, using generator: inout SplitMix64
    ) -> RetryDecision {
        let failures = request.failuresOfSource + 1
        let delay = self.delay(
            afterFailures: failures, retryAfter: request.failure.retryAfter, using: &generator)
        return self.allows(request, failures: failures) ? .elsewhere(after: delay) : .leaveSource
    }

    /// The delay to report for a connection that is not needed. What the server asks for concerns one more than it serves.
    private func delay(afterCrowd request: FailedRequest, using generator: inout SplitMix64) -> Duration {
        if request.isPaced { return self.delayFixed ?? .zero }
        return self.delay(afterFailures: request.failures, retryAfter: nil, using: &generator)
    }

    private func delay(
        after request: FailedRequest, _ failures: Int, using generator: inout SplitMix64
    ) -> Duration {
        if request.isPaced, request.failure.isRefusal { return self.delayFixed ?? .zero }
        return self.delay(afterFailures: failures, retryAfter: request.failure.retryAfter, using: &generator)
    }

    /// Whether a failure that counts is retried.
    ///
    /// - Parameter failures: The number of consecutive failures, including this one.
    private func allows(_ request: FailedRequest, failures: Int) -> Bool {
        let (failure, waited) = (request.failure, request.waited)
        guard failure.isTransient, (failure.retryAfter ?? .zero) <= self.retryAfterMax else { return false }
        if let timeMax, waited >= timeMax { return false }
        if let timeMin, request.hadContact, waited < timeMin, failure.status != 421 { return true }
        // While nothing is known of the file, each source is asked as rarely as one that has not answered.
        let isBrief = !request.hadContact || request.purpose == .first && request.hasAlternative
        let retriesMax = isBrief ? min(self.retriesMax, self.firstContactRetriesMax) : self.retriesMax
        // 421: another connection may reach another server. One retry is enough (RFC 9110 §15.5.20).
        return failures <= (failure.status == 421 ? min(retriesMax, 1) : retriesMax)
    }
}
