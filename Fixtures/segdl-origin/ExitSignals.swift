import Dispatch

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Waits for SIGINT and SIGTERM, which no longer end the process.
struct ExitSignals {
    private let stream: AsyncStream<CInt>
    private let sources: [any DispatchSourceSignal]

    init() {
        let (stream, continuation) = AsyncStream<CInt>.makeStream(bufferingPolicy: .bufferingOldest(1))
        self.stream = stream
        self.sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { continuation.yield(number) }
            source.resume()
            return source
        }
    }

    /// Returns at the first of these signals.
    func first() async {
        for await _ in self.stream { break }
        for source in self.sources { source.cancel() }
    }
}
