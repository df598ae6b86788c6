import Dispatch
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The signals sent to this process, as a sequence, from now until cancelled.
///
/// The second one that asks to end ends the process at once, whatever else hangs.
struct SignalSource {
    enum Event: Hashable {
        /// SIGINT, SIGTERM or SIGHUP, for the first time.
        case stop(CInt)
        /// The terminal has another size.
        case resize
    }

    let events: AsyncStream<Event>
    private let sources: [any DispatchSourceSignal]
    private let numbers: [CInt]
    private let isStopping = Latch()

    init() {
        // A pipe or file that takes no more is told by the call that writes.
        for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
        // A newer size makes an older one moot, and nothing follows a stop.
        let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(1))
        self.events = events
        self.numbers = [SIGINT, SIGTERM] + (Self.isIgnored(SIGHUP) ? [] : [SIGHUP])
        let queue = DispatchQueue(label: "segdl.signals")
        let isStopping = self.isStopping
        self.sources =
            self.numbers.map { number in
                Self.source(of: number, on: queue) {
                    guard isStopping.raise() else { _exit(ExitCode(signal: number).rawValue) }
                    continuation.yield(.stop(number))
                }
            } + [
                Self.source(of: SIGWINCH, on: queue) {
                    if !isStopping.isRaised { continuation.yield(.resize) }
                }
            ]
    }

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
