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
/// The second one that asks to end ends the process at once, whatever else hangs.
struct SignalSource {
    enum Event: Hashable {
        /// SIGINT, SIGTERM or SIGHUP, for the first time.
        case stop(CInt)
        /// The terminal has another size.
        case resize
    }

    private let listener = Listener()
    /// Descriptors that it and its queue open, in their own time; without them the process ends.
    static let descriptorCount = 8

    private let sources: [any DispatchSourceSignal]
    private let numbers: [CInt]
    private let isStopping = Latch()
    private let stoppedAt = Moment()

    /// 50 ms: nobody presses a key twice so soon.
    private static let echo: Duration = .milliseconds(50)

    /// When the first one came.
    private final class Moment: Sendable {
        let time = Mutex<ContinuousClock.Instant?>(nil)
    }

    init() {
        // A pipe or file that takes no more is told by the call that writes.
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
                        // timeout(1) signals its child and then the group that the child is in: both mean the same once.
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

    /// What comes from now on, for one listener at a time: whoever listened before hears nothing more.
    var events: AsyncStream<Event> { self.listener.begin() }

    /// Nothing is left that could be stopped gently: the next signal ends the process.
    func expectNone() {
        _ = self.isStopping.raise()
    }

    /// Signals mean again what they mean to any process.
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

    /// Whether the caller wants a signal ignored, as nohup does with SIGHUP.
    private static func isIgnored(_ number: CInt) -> Bool {
        let old = signal(number, SIG_IGN)
        signal(number, old)
        return unsafeBitCast(old, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}

extension SignalSource {
    /// Who hears of signals now. A stop that nobody heard is told to the next.
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
