import SegmentedDownloadCore
import Testing

@Suite("Retry decision")
struct RetryDecisionTests {
    private static let policy = RetryPolicy()
    private static let reset = DownloadError(.network, "reset", isTransient: true)
    private static let refused = DownloadError(.server, "busy", isTransient: true, status: 503)
    private static let long = DownloadError(
        .server, "busy", isTransient: true, status: 503, retryAfter: Self.policy.retryAfterMax + .seconds(1))
    private static let lasting = DownloadError(.server, "not found", status: 404)

    /// A decision without its delay.
    private enum Kind: Hashable { case counted, uncounted, fewerConnections, elsewhere, leaveSource, giveUp }

    private static func kind(_ request: FailedRequest, _ policy: RetryPolicy = Self.policy) -> Kind {
        var generator = SplitMix64(seed: 1)
        return switch policy.decision(on: request, using: &generator) {
        case .again(_, let isCounted): isCounted ? .counted : .uncounted
        case .fewerConnections: .fewerConnections
        case .elsewhere: .elsewhere
        case .leaveSource: .leaveSource
        case .giveUp: .giveUp
        }
    }

    private static func kind(
        _ purpose: FailedRequest.Purpose, _ failure: DownloadError, failures: Int = 0,
        _ change: (inout FailedRequest) -> Void = { _ in }
    ) -> Kind {
        var request = FailedRequest(purpose, failure, failures: failures)
        change(&request)
        return Self.kind(request)
    }

    @Test("Only transient failures are retried, a limited number of times and for a limited time")
    func limits() {
        let (retries, first) = (Self.policy.retriesMax, Self.policy.firstContactRetriesMax)
        #expect(Self.kind(.bytes, Self.reset, failures: retries - 1) == .counted)
        #expect(Self.kind(.bytes, Self.reset, failures: retries) == .giveUp)
        #expect(Self.kind(.first, Self.reset, failures: first) == .counted)
        #expect(Self.kind(.first, Self.reset, failures: first - 1) { $0.hadContact = false } == .counted)
        #expect(Self.kind(.first, Self.reset, failures: first) { $0.hadContact = false } == .giveUp)
        #expect(Self.kind(.bytes, Self.lasting) == .giveUp)
        let misdirected = DownloadError(.server, "misdirected", isTransient: true, status: 421)
        #expect(Self.kind(.bytes, misdirected) == .counted)
        #expect(Self.kind(.bytes, misdirected, failures: 1) == .giveUp)
        var policy = Self.policy
        policy.timeMax = .seconds(5)
        var request = FailedRequest(.bytes, Self.reset, failures: 0)
        request.waited = .seconds(4)
        #expect(Self.kind(request, policy) == .counted)
        request.waited = .seconds(5)
        #expect(Self.kind(request, policy) == .giveUp)
    }

    @Test("A job asks until its time has passed, if the origin has ever answered")
    func patience() {
        var policy = Self.policy
        policy.timeMin = RetryPolicy.timeMinOfJob
        var request = FailedRequest(.first, Self.reset, failures: 1000)
        #expect(Self.kind(request, policy) == .counted)
        request.waited = RetryPolicy.timeMinOfJob
        #expect(Self.kind(request, policy) == .giveUp)
        request.waited = .zero
        request.hadContact = false
        #expect(Self.kind(request, policy) == .giveUp)
    }

    @Test("While others are open, a refusal of one more connection means fewer of them, whatever it asks for")
    func crowded() {
        for failure in [Self.refused, Self.long] {
            for others in [FailedRequest.Others.silent, .served] {
                #expect(Self.kind(.bytes, failure, failures: 1000) { $0.others = others } == .fewerConnections)
            }
        }
        #expect(Self.kind(.first, Self.long, failures: 1000) { $0.others = .silent } == .fewerConnections)
        #expect(Self.kind(.first, Self.refused) { $0.others = .silent } == .counted)
        #expect(Self.kind(.bytes, Self.refused) == .counted)
        #expect(Self.kind(.bytes, Self.reset, failures: 1000) { $0.others = .served } == .uncounted)
        // Otherwise no failure would ever be counted.
        #expect(Self.kind(.bytes, Self.reset) { $0.others = .silent } == .counted)
        #expect(Self.kind(.bytes, Self.lasting) { $0.others = .served } == .giveUp)
    }

    @Test("What an additional request gets fails no file while a response of its source is received")
    func additional() {
        let retries = Self.policy.retriesMax
        for failure in [Self.lasting, DownloadError(.auth, "who", status: 401), DownloadError(.protocol, "noise")] {
            for purpose in [FailedRequest.Purpose.bytes, .sample, .audit] {
                let expected = purpose == .bytes ? Kind.fewerConnections : .uncounted
                #expect(
                    Self.kind(purpose, failure, failures: 1000) { ($0.others, $0.isServed) = (.silent, true) }
                        == expected)
            }
            // The other connection has just ended, or has no response yet.
            let most = RetryPolicy.additionalFailuresMax
            #expect(Self.kind(.bytes, failure, failures: most - 1) { $0.isAdditional = true } == .fewerConnections)
            #expect(Self.kind(.bytes, failure, failures: most) { $0.isAdditional = true } == .giveUp)
            for (failures, expected) in [(most - 1, Kind.counted), (most, .leaveSource)] {
                #expect(
                    Self.kind(.audit, failure) { ($0.failuresOfSource, $0.isAdditional) = (failures, true) } == expected
                )
            }
            // Another source's response cannot go on for this one.
            #expect(Self.kind(.bytes, failure) { ($0.others, $0.hasAlternative) = (.served, true) } == .leaveSource)
            #expect(
                Self.kind(.bytes, failure) { ($0.others, $0.isServed, $0.hasAlternative) = (.served, true, true) }
                    == .fewerConnections)
            #expect(Self.kind(.first, failure) { $0.others = .silent } == .giveUp)
            // A source that has served the file may count a connection that has just broken.
            for (failures, expected) in [(2, Kind.fewerConnections), (3, .giveUp)] {
                #expect(Self.kind(.bytes, failure, failures: failures) { $0.hasServed = true } == expected)
            }
            var (once, policy) = (FailedRequest(.bytes, failure, failures: 0), Self.policy)
            (once.hasServed, policy.retriesMax) = (true, 0)
            #expect(Self.kind(once, policy) == .giveUp)
        }
        let answered = DownloadError(.server, "broken", isTransient: true, status: 500)
        for (failures, expected) in [(retries - 1, Kind.counted), (retries, .fewerConnections)] {
            #expect(
                Self.kind(.bytes, answered, failures: failures) { ($0.others, $0.isServed) = (.served, true) }
                    == expected)
        }
        // The disk is the same for all connections.
        #expect(
            Self.kind(.bytes, DownloadError(.space, "full")) { ($0.others, $0.isServed) = (.served, true) } == .giveUp)
    }

    @Test("Each status is transient, or the same request gets it again", arguments: 400...599)
    func statuses(_ status: Int) {
        let lasting: Set = [501, 505, 506, 508, 510, 511]
        let expected = status < 500 ? [408, 421, 425, 429].contains(status) : !lasting.contains(status)
        #expect(DownloadError(.server, "", status: status).isTransient == expected)
    }

    @Test("With another source a failure is counted against the one that failed, and a lasting one ends its use")
    func sources() {
        for purpose in [FailedRequest.Purpose.first, .bytes, .sample, .audit] {
            #expect(Self.kind(purpose, Self.long) == .giveUp, "\(purpose)")
            let decide = { (failure: DownloadError, failures: Int) in
                Self.kind(purpose, failure, failures: 1000) {
                    ($0.hasAlternative, $0.failuresOfSource) = (true, failures)
                }
            }
            let retriesMax = purpose == .first ? Self.policy.firstContactRetriesMax : Self.policy.retriesMax
            #expect(decide(Self.reset, retriesMax - 1) == .elsewhere, "\(purpose)")
            #expect(decide(Self.reset, retriesMax) == .leaveSource, "\(purpose)")
            #expect(decide(Self.lasting, 0) == .leaveSource && decide(Self.long, 0) == .leaveSource, "\(purpose)")
        }
    }

    @Test("A comparison is repeated while the reference serves other requests")
    func comparisons() {
        #expect(Self.kind(.audit, Self.refused) == .uncounted)
        let decide = { (failure: DownloadError, waited: Duration) in
            Self.kind(.audit, failure) { ($0.hasAlternative, $0.waited) = (true, waited) }
        }
        #expect(decide(Self.refused, .zero) == .uncounted)
        #expect(decide(Self.refused, RetryPolicy.auditPatience) == .leaveSource)
        let slow = DownloadError(.server, "busy", isTransient: true, status: 503, retryAfter: RetryPolicy.auditPatience)
        #expect(decide(slow, .zero) == .leaveSource)
        #expect(Self.kind(.audit, Self.refused) { $0.waited = RetryPolicy.auditPatience } == .elsewhere)
        #expect(Self.kind(.sample, Self.refused) == .elsewhere)
        #expect(Self.kind(.sample, Self.reset) { $0.others = .served } == .uncounted)
        #expect(Self.kind(.sample, Self.long) == .giveUp && Self.kind(.audit, Self.long) == .giveUp)
        #expect(Self.kind(.sample, Self.lasting) == .leaveSource)
    }

    @Test("A complete file is asked about once more, if the answer may come soon")
    func confirmations() {
        #expect(Self.kind(.confirmation, Self.reset) == .counted)
        #expect(Self.kind(.confirmation, Self.reset, failures: 1) == .giveUp)
        #expect(Self.kind(.confirmation, Self.lasting) == .giveUp)
        let slow = DownloadError(.server, "busy", isTransient: true, status: 503, retryAfter: .seconds(6))
        #expect(Self.kind(.confirmation, slow) == .giveUp)
        var policy = Self.policy
        policy.retriesMax = 0
        #expect(Self.kind(FailedRequest(.confirmation, Self.reset, failures: 0), policy) == .giveUp)
    }

    @Test("A paced host is asked again when the group says so, or after the user's own delay")
    func paced() {
        var request = FailedRequest(.bytes, Self.refused, failures: 9)
        request.isPaced = true
        var (policy, generator) = (Self.policy, SplitMix64(seed: 1))
        #expect(policy.decision(on: request, using: &generator) == .again(after: .zero, isCounted: true))
        policy.delayFixed = .seconds(7)
        #expect(policy.decision(on: request, using: &generator) == .again(after: .seconds(7), isCounted: true))
    }
}
