import Synchronization
import Testing

@testable import SegmentedDownload

/// What observers of one download are sent, and when those who asked for something are answered.
@Suite("Events of a download")
struct EventBroadcasterTests {
    private static let progress = DownloadProgress()
    private static let failed = DownloadEvent.failed(DownloadError(.network, "no answer"), Self.progress)

    /// What an observer gets until the sequence ends.
    private static func rest(_ events: AsyncStream<DownloadEvent>) async -> [DownloadEvent] {
        await events.reduce(into: []) { $0.append($1) }
    }

    /// What a group is told.
    private final class Relay: Sendable {
        private let signals = Mutex<[String]>([])

        init(_ broadcaster: EventBroadcaster) {
            broadcaster.relay { signal in
                self.signals.withLock { signals in
                    switch signal {
                    case .happened(let event): signals.append("\(event)")
                    case .reopened: signals.append("reopened")
                    }
                }
            }
        }

        var texts: [String] { self.signals.withLock { $0 } }
    }

    @Test("Every observer gets every event from its beginning on, up to a terminal one")
    func observers() async {
        let broadcaster = EventBroadcaster()
        let first = broadcaster.events()
        broadcaster.send(.note("1"))
        let second = broadcaster.events()
        broadcaster.send(.note("2"))
        #expect(broadcaster.terminal == nil)
        broadcaster.send(.paused(Self.progress))
        broadcaster.send(.note("3"))
        #expect(broadcaster.terminal != nil)
        #expect(await Self.rest(first) == [.note("1"), .note("2"), .paused(Self.progress)])
        #expect(await Self.rest(second) == [.note("2"), .paused(Self.progress)])
    }

    @Test("An observer that comes late gets the last terminal event alone")
    func late() async {
        let broadcaster = EventBroadcaster()
        broadcaster.send(Self.failed)
        #expect(await Self.rest(broadcaster.events()) == [Self.failed])
    }

    @Test("A slow observer loses the oldest events, and never the last")
    func slow() async {
        let broadcaster = EventBroadcaster()
        let events = broadcaster.events()
        for number in 0..<2000 { broadcaster.send(.note("\(number)")) }
        broadcaster.send(.cancelled)
        let rest = await Self.rest(events)
        #expect(rest.count == EventBroadcaster.bufferLength && rest.last == .cancelled)
    }

    @Test("A paused or failed download is opened again; one that is over, under way or finished with is not")
    func reopening() async {
        for (terminal, isReopened) in [
            (.paused(Self.progress), true), (Self.failed, true), (.cancelled, false), (nil, false),
        ] as [(DownloadEvent?, Bool)] {
            let broadcaster = EventBroadcaster()
            let relay = Relay(broadcaster)
            if let terminal { broadcaster.send(terminal) }
            #expect(broadcaster.reopen() == isReopened)
            #expect(relay.texts.contains("reopened") == isReopened)
            #expect((broadcaster.terminal != nil) == (terminal == .cancelled))
            let events = broadcaster.events()
            broadcaster.send(.cancelled)
            #expect(await Self.rest(events) == [.cancelled])
        }
        let finished = EventBroadcaster()
        finished.send(.paused(Self.progress))
        finished.finish()
        #expect(!finished.reopen() && finished.terminal != nil)
    }

    @Test("At the end a download that has not ended is cancelled, and one that has is not")
    func finish() async {
        let open = EventBroadcaster()
        let relay = Relay(open)
        let events = open.events()
        open.finish()
        #expect(await Self.rest(events) == [.cancelled])
        #expect(relay.texts == ["\(DownloadEvent.cancelled)"])

        let paused = EventBroadcaster()
        let pausedRelay = Relay(paused)
        paused.send(.paused(Self.progress))
        paused.finish()
        #expect(await Self.rest(paused.events()) == [.paused(Self.progress)])
        #expect(pausedRelay.texts.count == 1)
    }

    // MARK: Pending controls

    /// Something asked of the engine, and whether it was answered.
    private final class PendingControl: Sendable {
        let ticket: Int
        private let isAnswered = Latch()
        private let waiter: Task<Void, Never>

        init(_ broadcaster: EventBroadcaster, isPause: Bool = true) {
            let (ticket, answer) = broadcaster.addPendingControl(isPause: isPause)
            self.ticket = ticket
            self.waiter = Task { [isAnswered] in
                for await _ in answer {}
                isAnswered.raise()
            }
        }

        /// Returns once it is answered; the test hangs if it never is.
        func wait() async { await self.waiter.value }

        /// Whether it waits still. That it does shows only where the other tasks had their turns meanwhile.
        var isWaiting: Bool {
            get async {
                for _ in 0..<200 { await Task.yield() }
                return !self.isAnswered.isRaised
            }
        }
    }

    @Test("What is carried out at once is answered at once, and nothing else is")
    func done() async {
        let broadcaster = EventBroadcaster()
        let first = PendingControl(broadcaster)
        let second = PendingControl(broadcaster)
        #expect(first.ticket != second.ticket)
        broadcaster.handle(second.ticket, isDone: true)
        await second.wait()
        #expect(await first.isWaiting)
        // An unknown ticket is ignored.
        broadcaster.handle(second.ticket, isDone: true)
        broadcaster.handle(first.ticket, isDone: true)
        await first.wait()
    }

    @Test("A rest answers those whose request the engine has handled by then")
    func rest() async {
        let broadcaster = EventBroadcaster()
        let handled = PendingControl(broadcaster)
        let later = PendingControl(broadcaster)
        broadcaster.handle(handled.ticket, isDone: false)
        broadcaster.send(.note(""))
        #expect(await handled.isWaiting)
        broadcaster.send(.paused(Self.progress))
        await handled.wait()
        #expect(await later.isWaiting)
        broadcaster.finish()
        await later.wait()
    }

    @Test("A resumption takes back the pauses that were handled before it, and no other request")
    func withdrawal() async {
        let broadcaster = EventBroadcaster()
        let pause = PendingControl(broadcaster)
        let other = PendingControl(broadcaster, isPause: false)
        let later = PendingControl(broadcaster)
        for ticket in [pause.ticket, other.ticket] { broadcaster.handle(ticket, isDone: false) }
        broadcaster.withdrawPauses()
        await pause.wait()
        #expect(await other.isWaiting)
        #expect(await later.isWaiting)
        broadcaster.finish()
        await other.wait()
        await later.wait()
    }

    @Test("Who asks after the end is answered at once")
    func afterTheEnd() async {
        let broadcaster = EventBroadcaster()
        broadcaster.finish()
        await PendingControl(broadcaster).wait()
    }
}
