import Dispatch
import SegmentedDownload
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The signals sent to this process, from now until cancelled.
///
/// The second SIGINT, SIGTERM or SIGHUP ends the process at once.
struct SignalSource {
    enum Event: Hashable {
        /// SIGINT, SIGTERM or SIGHUP, for the first time.
        case stop(CInt)
        /// The terminal was resized.
        case resize
    }

    private let listener = Listener()
    /// Descriptors that dispatch opens later for the sources and their queue. The process traps if there are too few.
    static let descriptorCount = 8

    private let sources: [any DispatchSourceSignal]
    private let numbers: [CInt]
    private let isStopping = Latch()
    private let stoppedAt = Moment()

    /// 50 ms: two signals within this time count as one, because a key is not pressed twice so fast.
    private static let echo: Duration = .milliseconds(50)

    /// When the first signal arrived.
    private final class Moment: Sendable {
        let time = Mutex<ContinuousClock.Instant?>(nil)
    }

    init() {
        // The writing call reports a closed pipe or a file that is too large.
        for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
        let listener = self.listener
        self.numbers = [SIGINT, SIGTERM] + (Self.isIgnored(SIGHUP) ? [] : [SIGHUP])
        let queue = DispatchQueue(label: "segdl.signals")
        let isStopping = self.isStopping
        let stoppedAt = self.stoppedAt
        self.sources =
            self.numbers.map { number in
                Self.source(of: number, on: queue) {
                    guard isStopping.raise() else {
                        // timeout(1) signals its child and then the child's group: two signals for one request.
                        if let time = stoppedAt.time.withLock({ $0 }), ContinuousClock.now - time <= Self.echo {
                            return
                        }
                        _exit(ExitCode(signal: number).rawValue)
                    }
                    stoppedAt.time.withLock { $0 = .now }
                    listener.tell(.stop(number))
                }
            } + [
                Self.source(of: SIGWINCH, on: queue) {
                    if !isStopping.isRaised { listener.tell(.resize) }
                }
            ]
    }

    /// The signals from now on. Only the latest stream receives them.
    var events: AsyncStream<Event> { self.listener.begin() }

    /// Makes the next signal end the process at once.
    func expectNone() {
        _ = self.isStopping.raise()
    }

    /// Restores the default actions of the signals.
    func cancel() {
        for source in self.sources { source.cancel() }
        for number in self.numbers { signal(number, SIG_DFL) }
    }

    private static func source(
        of number: CInt, on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
    ) -> any DispatchSourceSignal {
        if number != SIGWINCH { signal(number, SIG_IGN) }
        let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
        source.setEventHandler(handler: handler)
        source.resume()
        return source
    }

    /// Whether the process was started with the signal ignored, as nohup does with SIGHUP.
    private static func isIgnored(_ number: CInt) -> Bool {
        let old = signal(number, SIG_IGN)
        signal(number, old)
        return unsafeBitCast(old, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}

extension SignalSource {
    /// The current stream of signals. A stop that no stream received is delivered to the next one.
    private final class Listener: Sendable {
        private struct State {
            var continuation: AsyncStream<Event>.Continuation?
            var undelivered: Event?
        }

        private let state = Mutex(State())

        func begin() -> AsyncStream<Event> {
            // A newer size makes an older one moot, and nothing follows a stop.
            let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(1))
            let undelivered = self.state.withLock { state in
                state.continuation = continuation
                defer { state.undelivered = nil }
                return state.undelivered
            }
            if let undelivered { continuation.yield(undelivered) }
            return events
        }

        func tell(_ event: Event) {
            self.state.withLock { state in
                if case .terminated = state.continuation?.yield(event) ?? .terminated { state.undelivered = event }
            }
        }
    }
}
