import NIOCore
import Synchronization

/// The origin's state for each requested path. Counts are by path and query, replacements by path.
final class OriginResources: Sendable {
    /// The counts of one path and query.
    final class Resource: Sendable {
        struct State {
            var requestsCount = 0
            var bodiesCount = 0
            var liveCount = 0
            var bytesSent: Int64 = 0
            var pacer: Pacer?
        }

        let state = Mutex(State())
    }

    private struct State {
        var resources: [String: Resource] = [:]
        var replacements: [String: Moment.Replacement] = [:]
        /// The query that applies to requests for a path without one.
        var queries: [String: String] = [:]
        var route: (@Sendable (RoutedRequest) -> RoutedAnswer?)?
    }

    private let log: OriginLog
    private let start = NIODeadline.now()
    private let state = Mutex(State())

    init(log: OriginLog) {
        self.log = log
    }

    func remember(query: String, of path: String) {
        self.state.withLock { $0.queries[path] = query }
    }

    func route(_ route: @escaping @Sendable (RoutedRequest) -> RoutedAnswer?) {
        self.state.withLock { $0.route = route }
    }

    func replace(_ path: String, seed: UInt64, size: Int64?, entityTag: Behaviour.EntityTag) {
        self.state.withLock { state in
            let ordinal = (state.replacements[path]?.ordinal ?? 0) + 1
            state.replacements[path] = .init(seed: seed, size: size, entityTag: entityTag, ordinal: ordinal)
        }
    }

    func reset() {
        self.state.withLock { $0 = State() }
    }

    /// Decides the answer to a request and counts it.
    func answer(_ given: OriginRequest, connection: Int, peer: String, unixSeconds: Int64) -> (Answer, OriginExchange) {
        let now = NIODeadline.now()
        let routed = self.state.withLock(\.route)?(RoutedRequest(given))
        let (request, resource, replacement) = self.state.withLock { state in
            var request = given
            if case .content(let target)? = routed { request.target = target }
            if let query = state.queries[given.path], !given.target.contains("?") { request.target += "?" + query }
            let resource = state.resources[request.stateKey] ?? Resource()
            state.resources[request.stateKey] = resource
            return (request, resource, state.replacements[request.path])
        }
        let elapsed = Duration.nanoseconds((now - self.start).nanoseconds)
        let nonce = UInt64.random(in: .min ... .max)

        let (answer, pacer) = resource.state.withLock { state in
            state.requestsCount += 1
            let moment = Moment(
                requestOrdinal: state.requestsCount,
                connection: connection,
                bodyOrdinal: state.bodiesCount + 1,
                liveCount: state.liveCount,
                bytesSent: state.bytesSent,
                replacement: replacement,
                elapsed: elapsed,
                unixSeconds: unixSeconds,
                nonce: nonce
            )
            let answer =
                if case .document(let status, let fields, let text)? = routed {
                    Answer(status: status, fields: fields, document: text, to: request)
                } else {
                    Answer(to: request, at: moment)
                }
            if answer.isAdmitted { state.liveCount += 1 }
            if answer.isContent { state.bodiesCount += 1 }
            if state.pacer == nil, let rate = answer.totalRate { state.pacer = Pacer(rate: rate, now: now) }
            return (answer, answer.totalRate == nil ? nil : state.pacer)
        }
        let entry = OriginLog.Entry(
            path: request.target,
            method: request.method,
            headers: request.headers,
            status: answer.head?.status ?? 0,
            connection: connection,
            peer: peer,
            time: elapsed
        )
        let exchange = OriginExchange(
            entry: self.log.requestStarted(entry),
            log: self.log,
            resource: resource,
            isAdmitted: answer.isAdmitted,
            sharedPacer: pacer
        )
        return (answer, exchange)
    }
}

/// One request in progress: counts its bytes, and records its end exactly once.
struct OriginExchange: Sendable {
    fileprivate let entry: OriginLog.ID
    fileprivate let log: OriginLog
    fileprivate let resource: OriginResources.Resource
    fileprivate let isAdmitted: Bool
    let sharedPacer: Pacer?

    func sent(_ count: Int) {
        self.resource.state.withLock { $0.bytesSent += Int64(count) }
        self.log.bytesSent(count, for: self.entry)
    }

    func finish() {
        if self.isAdmitted { self.resource.state.withLock { $0.liveCount -= 1 } }
        self.log.requestFinished(self.entry)
    }
}
