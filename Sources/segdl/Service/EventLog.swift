import SegmentedDownload
import SegmentedDownloadService
import ServiceLifecycle
import Synchronization

/// The latest events of the service's downloads, numbered from 1, for any number of readers.
///
/// Readers have no queues of their own: each remembers the number of its last event. One that falls behind by more than the
/// log holds misses events and is told so. It never delays a download.
final class EventLog: Service {
    /// An event with its number.
    final class Entry: Sendable {
        let number: Int
        let event: DownloadEvent?
        let file: TransferFile?
        private let time: Duration
        private let text = Mutex<String?>(nil)

        fileprivate init(_ number: Int, _ event: DownloadEvent?, _ file: TransferFile?, at time: Duration) {
            self.number = number
            self.event = event
            self.file = file
            self.time = time
        }

        /// The name in server-sent events.
        var name: String { self.event?.name ?? "queue" }

        /// The event as `--json` writes it, without the line's end. It is encoded when it is first read.
        var line: String {
            self.text.withLock { text in
                if let text { return text }
                let record =
                    if let event, let file {
                        EventRecord(event, of: file, time: self.time)
                    } else {
                        EventRecord("queue", time: self.time)
                    }
                let line = record.jsonLine
                text = line
                return line
            }
        }
    }

    /// What a reader gets.
    struct Batch {
        let entries: [Entry]
        /// Whether events between the reader's last one and these are lost.
        let isLost: Bool
    }

    private struct Reader {
        let signal: AsyncStream<Bool>.Continuation
        let heartbeat: Duration
        /// When the reader last got a signal.
        var signalled: Duration
    }

    private struct State {
        var entries: [Entry] = []
        /// The index of the oldest entry, once the log is full.
        var oldest = 0
        var numberLast = 0
        var readers: [Int: Reader] = [:]
        var readerNext = 0
        var isOver = false
    }

    /// 4096 events: some seconds of many small files, minutes of large ones.
    static let capacity = 4096
    /// 128 events for a reader at a time.
    private static let batchMax = 128

    private let queue: DownloadQueue
    private let reporters: [any ProgressReporter]
    private let elapsed: @Sendable () -> Duration
    private let state = Mutex(State())

    /// - Parameter reporters: Get each event before the readers.
    init(of queue: DownloadQueue, reporters: [any ProgressReporter], elapsed: @escaping @Sendable () -> Duration) {
        self.queue = queue
        self.reporters = reporters
        self.elapsed = elapsed
    }

    /// Collects events until the queue ends, and waits until the service shuts down.
    func run() async throws {
        await self.collect()
        self.end()
        // A service that returns earlier ends all others at once.
        try await gracefulShutdown()
    }

    private func collect() async {
        guard let events = try? await self.queue.events() else { return }
        let failures = self.queue.startFailures
        await withDiscardingTaskGroup { tasks in
            tasks.addTask {
                var revision = -1
                for await _ in self.queue.changes where self.queue.revision != revision {
                    revision = self.queue.revision
                    self.append(nil, nil)
                }
            }
            tasks.addTask {
                while (try? await Task.sleep(for: .seconds(1))) != nil { self.beat() }
            }
            tasks.addTask {
                for await entry in failures {
                    guard let error = entry.error else { continue }
                    let event = DownloadEvent.failed(error, entry.progress ?? DownloadProgress())
                    let file = TransferFile(EntryRecord(entry))
                    for reporter in self.reporters { reporter.report(event, of: file) }
                    self.append(event, file)
                }
            }
            for await case .download(let download, let event) in events {
                var file = TransferFile(download)
                if case .started(let start) = event { file.url = start.url }
                // The queue also removes downloads that are paused or have failed from the group.
                if event == .cancelled, await self.hasEntry(download) { continue }
                // The download starts again with the request that the entry has now.
                if event.isEnd, await self.queue.isOutdated(download) { continue }
                for reporter in self.reporters { reporter.report(event, of: file) }
                self.append(event, file)
            }
            tasks.cancelAll()
        }
    }

    /// Whether a download that has left the group is in the queue, and not because it is being cancelled.
    private func hasEntry(_ download: Download) async -> Bool {
        guard let id = QueueEntry.ID(rawValue: download.id.rawValue), let entry = try? await self.queue.entry(id)
        else { return false }
        return entry.state != .cancelling
    }

    func append(_ event: DownloadEvent?, _ file: TransferFile?) {
        let time = self.elapsed()
        let readers = self.state.withLock { state in
            state.numberLast += 1
            let entry = Entry(state.numberLast, event, file, at: time)
            if state.entries.count < Self.capacity {
                state.entries.append(entry)
            } else {
                state.entries[state.oldest] = entry
                state.oldest = (state.oldest + 1) % Self.capacity
            }
            for number in state.readers.keys { state.readers[number]?.signalled = time }
            return state.readers.values.map(\.signal)
        }
        for reader in readers { reader.yield(true) }
    }

    /// The number of the latest event; 0 if there is none.
    var numberLast: Int { self.state.withLock { $0.numberLast } }

    /// The next events after a number.
    func batch(after number: Int) -> Batch {
        self.state.withLock { state in
            let numberFirst = state.numberLast - state.entries.count + 1
            let from = max(number + 1, numberFirst)
            let upTo = min(from + Self.batchMax, state.numberLast + 1)
            let entries = (from..<max(from, upTo)).map { number in
                state.entries[(state.oldest + number - numberFirst) % state.entries.count]
            }
            return Batch(entries: entries, isLost: number + 1 < numberFirst || number > state.numberLast)
        }
    }

    /// `true` at once and after new events, `false` each time nothing came for a while, until the queue ends.
    func changes(heartbeat: Duration) -> AsyncStream<Bool> {
        let (changes, reader) = AsyncStream.makeStream(of: Bool.self, bufferingPolicy: .bufferingNewest(1))
        reader.yield(true)
        let number = self.state.withLock { state -> Int? in
            if state.isOver { return nil }
            state.readerNext += 1
            state.readers[state.readerNext] = Reader(signal: reader, heartbeat: heartbeat, signalled: self.elapsed())
            return state.readerNext
        }
        guard let number else {
            reader.finish()
            return changes
        }
        reader.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
        }
        return changes
    }

    /// Signals the readers for which nothing came for a while.
    private func beat() {
        let now = self.elapsed()
        let idle = self.state.withLock { state in
            let idle = state.readers.filter { now - $0.value.signalled >= $0.value.heartbeat }
            for number in idle.keys { state.readers[number]?.signalled = now }
            return idle.values.map(\.signal)
        }
        for signal in idle { signal.yield(false) }
    }

    private func end() {
        let readers = self.state.withLock { state in
            state.isOver = true
            defer { state.readers = [:] }
            return Array(state.readers.values)
        }
        for reader in readers { reader.signal.finish() }
    }
}

extension DownloadEvent {
    /// Whether it says that the download ended by itself.
    fileprivate var isEnd: Bool {
        switch self {
        case .completed, .failed: true
        case .started, .progress, .segment, .retrying, .checkpoint, .note, .state, .paused, .cancelled: false
        }
    }
}
