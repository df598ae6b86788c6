import Foundation
import Origin
import TestSupport
import Testing

@testable import SegmentedDownload

/// The events of a group and of its downloads.
@Suite struct GroupEventTests {
    /// An event as text, if every observer must receive it.
    private static func word(_ event: DownloadGroup.Event) -> String? {
        switch event {
        case .added(let download): "added \(download.id)"
        case .removed(let download): "removed \(download.id)"
        case .allCompleted(let summary):
            "all \(summary.completed)+\(summary.failed)+\(summary.paused)+\(summary.cancelled)"
        case .download(let download, let event):
            switch event {
            case .state(let state): "\(download.id) \(state)"
            case .started: "\(download.id) started"
            case .paused: "\(download.id) has paused"
            case .completed: "\(download.id) has completed"
            case .failed: "\(download.id) has failed"
            case .cancelled: "\(download.id) has been cancelled"
            case .progress, .segment, .retrying, .checkpoint, .note: nil
            }
        }
    }

    private static func words(
        _ events: AsyncStream<DownloadGroup.Event>, until last: String? = nil
    ) async -> [String] {
        var words: [String] = []
        for await event in events {
            guard let word = Self.word(event) else { continue }
            words.append(word)
            if word == last { break }
        }
        return words
    }

    @Test("Each observer of a group receives all events in the same order, however late it reads them")
    func observersApart() async throws {
        try await Harness.run { harness in
            let (late, early, alsoEarly) =
                try await harness.withGroup { group in
                    let (late, first, second) = (group.events, group.events, group.events)
                    async let early = Self.words(first, until: "removed 1")
                    async let alsoEarly = Self.words(second, until: "removed 1")
                    let one = try group.add(
                        harness.request("/1M/a") { $0.destination = .file(harness.directory + "/a") })
                    let two = try group.add(harness.stuckRequest("b"))
                    await two.reached(1)
                    _ = try await one.result()
                    await two.pause()
                    await group.remove(two)
                    return (late, await early, await alsoEarly)
                } as (AsyncStream<DownloadGroup.Event>, [String], [String])
            let words = await Self.words(late)
            #expect(words.last != nil && words.contains("all 1+0+1+0"))
            #expect(
                words.filter { $0.hasPrefix("1 ") || $0.hasSuffix(" 1") } == [
                    "added 1", "1 probing", "1 running", "1 started", "1 paused", "1 has paused", "1 cancelled",
                    "1 has been cancelled", "removed 1",
                ])
            #expect(early == words.suffix(early.count) && alsoEarly == words.suffix(alsoEarly.count))
        }
    }

    @Test("A slow observer of a group loses progress, never a start or an end")
    func slowObserver() async {
        let (buffer, stream) = EventBuffer.stream()
        let summary = GroupSummary()
        await Harness.withPausedDownload { download in
            for round in 0..<3 {
                for _ in 0..<EventBuffer.lengthMaximum { buffer.push(.download(download, .progress(.init()))) }
                buffer.push(.download(download, .note("\(round)")))
            }
            buffer.push(.allCompleted(summary))
            buffer.finish()
        }
        var progress = 0
        var notes: [String] = []
        var hasEnded = false
        for await event in stream {
            switch event {
            case .download(_, .progress): progress += 1
            case .download(_, .note(let text)): notes.append(text)
            case .allCompleted(let last): hasEnded = last == summary
            case .download, .added, .removed: Issue.record("unexpected event")
            }
        }
        #expect(progress == EventBuffer.lengthMaximum && notes == ["0", "1", "2"] && hasEnded)
    }

    @Test("A slow observer of a download loses the oldest events, never the terminal one")
    func slowObserverOfOne() async {
        let broadcaster = EventBroadcaster()
        let late = broadcaster.events()
        let count = 3 * EventBroadcaster.bufferLength
        for number in 0..<count { broadcaster.send(.note("\(number)")) }
        broadcaster.send(.cancelled)
        var events: [DownloadEvent] = []
        for await event in late { events.append(event) }
        #expect(events.count == EventBroadcaster.bufferLength && events.last == .cancelled)
        #expect(events.first == .note("\(count - EventBroadcaster.bufferLength + 1)"))
    }

    @Test("All-completed comes each time the last active one ends, with failed and paused ones counted apart")
    func allCompleted() async throws {
        try await Harness.run { harness in
            let events = try await harness.withGroup { group in
                let events = group.events
                let paused = try group.add(harness.stuckRequest("a"))
                await paused.reached(1)
                let failed = try group.add(
                    harness.request("/1M/b?fail=404:all") { $0.destination = .file(harness.directory + "/b") })
                try await failed.rest()
                let done = try group.add(harness.request("/1M/c") { $0.destination = .file(harness.directory + "/c") })
                _ = try await done.result()
                await paused.pause()
                let summary = await group.waitForAll()
                #expect(summary.completed == 1 && summary.failed == 1 && summary.paused == 1)
                #expect(summary.bytes == 1.mebibytes && !summary.isComplete)
                failed.resume()
                try await failed.rest()
                return events
            }
            let summaries = await Self.words(events).filter { $0.hasPrefix("all") }
            #expect(summaries == ["all 1+1+1+0", "all 1+1+1+0"])
        }
    }

    @Test("Waiting for all returns at once where nothing is under way, and when the last has ended where something is")
    func waitForAll() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                #expect(await group.waitForAll() == GroupSummary())
                for name in 0..<5 {
                    try group.add(
                        harness.request("/1M/\(name)") { $0.destination = .file(harness.directory + "/\(name)") })
                }
                async let other = group.waitForAll()
                let summary = await group.waitForAll()
                #expect(summary.completed == 5 && summary.isComplete && summary.bytes == 5.mebibytes)
                #expect(await other == summary)
                let stuck = try group.add(harness.stuckRequest())
                // A waiter that is cancelled returns.
                await withTaskGroup(of: GroupSummary.self) { tasks in
                    tasks.addTask { await group.waitForAll() }
                    tasks.cancelAll()
                }
                await stuck.cancel(keepingPartial: false)
            }
        }
    }

    @Test("Every state of a download is an event, in order, and the last one precedes the terminal event")
    func states() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                // Observed from before the download is added, so that no event is missed.
                let events = group.events
                let download = try group.add(harness.request("/1M/file.bin?fail=503:1") { $0.segments = .exactly(1) })
                var states: [DownloadState] = []
                for await case .download(let told, let event) in events where told.id == download.id {
                    if case .state(let state) = event { states.append(state) }
                    if case .completed = event {
                        #expect(states.last == .completed)
                        break
                    }
                }
                #expect(states == [.probing, .retrying, .probing, .running, .verifying, .completed])
                await group.remove(download)
                let stuck = try group.add(harness.stuckRequest("b"))
                let first = stuck.events
                await stuck.reached(1)
                await stuck.pause()
                states = []
                for await case .state(let state) in first { states.append(state) }
                // States before the observer listened are not replayed.
                let whole: [DownloadState] = [.probing, .running, .paused]
                #expect(states.last == .paused && states == whole.suffix(states.count))
                stuck.resume()
                let second = stuck.events
                await stuck.reached(1)
                await stuck.cancel(keepingPartial: false)
                states = []
                for await case .state(let state) in second { states.append(state) }
                let all: [DownloadState] = [.probing, .running, .cancelled]
                #expect(states.last == .cancelled && Array(states.suffix(3)) == all.suffix(states.count))
                #expect(DownloadState.allCases.filter(\.isAtRest) == [.paused, .completed, .failed, .cancelled])
                #expect(DownloadState.allCases.filter(\.isOver) == [.completed, .cancelled])
            }
        }
    }

    @Test("User information is in each event of its download, and is never sent to the server")
    func userInfo() async throws {
        try await Harness.run { harness in
            let events = try await harness.withGroup { group in
                let events = group.events
                let request = try harness.request("/1M/file.bin") {
                    $0.userInfo = ["title": "needle", "image": "i.png"]
                }
                _ = try await group.add(request).result()
                return events
            }
            var count = 0
            for await event in events {
                guard case .download(let download, _) = event else { continue }
                count += 1
                #expect(download.request.userInfo == ["title": "needle", "image": "i.png"])
            }
            #expect(count > 3)
            let sent = harness.origin.log.snapshot().requests.flatMap { $0.headers.map(\.value) + [$0.path] }
            #expect(!sent.isEmpty && sent.allSatisfy { !$0.contains("needle") })
        }
    }

    @Test("A cancelled download has not failed")
    func abortIsNoFailure() async throws {
        try await Harness.run { harness in
            let summary = try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest())
                let events = download.events
                await download.reached(1)
                await download.cancel(keepingPartial: true)
                for await event in events {
                    if case .failed = event { Issue.record("a cancelled download reported a failure") }
                }
                #expect(try await download.rest() == .cancelled && download.state == .cancelled)
                return await group.waitForAll()
            }
            #expect(summary.cancelled == 1 && summary.failed == 0)
        }
    }

    @Test(
        "A download's events end with it, and a removed or unlisted download is released",
        .timeLimit(.minutes(30)))
    func nothingLeaks() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.history.listsFinished = false
            try await harness.withGroup(configuration) { group in
                weak var finished: DownloadJob?
                weak var removed: DownloadJob?
                do {
                    let download = try group.add(
                        harness.request("/1M/a") { $0.destination = .file(harness.directory + "/a") })
                    finished = download.job
                    for await _ in download.events {}
                    let paused = try group.add(harness.stuckRequest("b"))
                    removed = paused.job
                    await paused.reached(1)
                    await group.remove(paused)
                    #expect(group.downloads.isEmpty)
                }
                // The engine releases a download when it handles the removal, which precedes its answer to later calls.
                let last = try group.add(paused: harness.stuckRequest("c"))
                await last.cancel(keepingPartial: true)
                // Its tasks end independently.
                while finished != nil || removed != nil, !Task.isCancelled { await last.pause() }
                #expect(finished == nil && removed == nil)
            }
        }
    }
}

extension Harness {
    /// A download that never contacts an origin.
    fileprivate static func withPausedDownload(_ body: (Download) -> Void) async {
        try? await withDownloadClient { client in
            try await client.withGroup { group in
                body(
                    try group.add(
                        paused: DownloadRequest(try SourceURL("http://127.0.0.1:1/file"), to: .file("/dev/null/x"))))
            }
        }
    }
}
