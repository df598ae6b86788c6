import Foundation
import Logging
import Origin
import SegmentedDownload
import SegmentedDownloadService
import ServiceLifecycle
import ServiceLifecycleTestKit
import TestSupport
import Testing

/// The code in the article on servers works as described. `TutorialTests` compares it with the article.
@Suite("Tutorial: downloads in a server")
struct ServersTutorialTests {
    /// A server that answers nothing until it is shut down.
    private struct Server: Service {
        func run() async throws {
            try await gracefulShutdown()
        }
    }

    /// Runs `body` in a server with downloads, and shuts both down.
    private static func serve(_ downloads: DownloadService, _ body: () async throws -> Void) async throws {
        var configuration = services(of: Server(), downloads, Logger(label: "test"))
        // Signals of this process end the tests.
        configuration.gracefulShutdownSignals = []
        let group = ServiceGroup(configuration: configuration)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            try await body()
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    @Test("What was added to a queue is fetched by the next process that runs it")
    func queued() async throws {
        try await Harness.run { harness in
            let first = queue(in: FilePath(harness.directory))
            let running = Task { try await first.run() }
            let id = try await add(harness.origin.plainURL("/1M/a?stall-after=300000:1"), to: first)
            first.shutdown()
            try await running.value
            let second = queue(in: FilePath(harness.directory))
            let again = Task { try await second.run() }
            for await _ in second.changes where try await second.entries().isEmpty { break }
            #expect(try await second.history(limit: 9).map(\.id) == [id.rawValue])
            second.shutdown()
            try await again.value
            #expect(try harness.names() == ["files", "state"])
        }
    }

    @Test("A shutdown pauses downloads, and the next server resumes them, also one that waited in the queue")
    func restart() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.limits.downloads = 1
            let first = DownloadService(configuration, directory: FilePath(harness.directory))
            let stuck = harness.origin.plainURL("/8M/a?stall-after=300000:all")
            var states: [ResumeState] = []
            try await Self.serve(first) {
                let running = try await add(stuck, named: "a", to: first)
                await running.reached(1)
                let waiting = try await add(harness.origin.plainURL("/1M/b"), named: "b", to: first)
                #expect(try await add(stuck, named: "a", to: first).id == running.id)
                states = unfinished(in: try await first.downloads())
                #expect(states.map(\.id) == [running.id.rawValue, waiting.id.rawValue])
            }
            #expect(try harness.names() == ["a.segdl", "a.segdl-part"])

            _ = harness.origin.plainURL("/8M/a")
            let second = DownloadService(configuration, directory: FilePath(harness.directory))
            try await Self.serve(second) {
                #expect(try await restore(states, in: second).isEmpty)
                let summary = try await second.downloads().waitForAll()
                // 3 if the first was complete before its stored state was added.
                #expect(summary.completed >= 2 && summary.isComplete)
            }
            #expect(try harness.names() == ["a", "b"])
        }
    }

    @Test("A paused download that is added again is resumed")
    func resumes() async throws {
        try await Harness.run { harness in
            let downloads = DownloadService(directory: FilePath(harness.directory))
            let stuck = harness.origin.plainURL("/8M/a?stall-after=300000:all")
            try await Self.serve(downloads) {
                let download = try await add(stuck, named: nil, to: downloads)
                await download.reached(1)
                await download.pause()
                #expect(download.outcome?.name == "paused")
                #expect(try await add(stuck, named: nil, to: downloads).id == download.id)
                #expect(download.outcome == nil)
            }
        }
    }

    /// The names of server-sent events, whose data name them too.
    private static func names(_ frames: [String]) throws -> [String] {
        try frames.map { frame in
            let lines = frame.split(separator: "\n", omittingEmptySubsequences: false)
            try #require(lines.count == 4 && lines[2].isEmpty && lines[3].isEmpty, "\(frame)")
            let name = lines[0].dropFirst("event: ".count)
            try #require(lines[0] == "event: \(name)" && lines[1].hasPrefix("data: {"), "\(frame)")
            #expect(name == "snapshot" || lines[1].contains("\"event\":\"\(name)\""), "\(frame)")
            return String(name)
        }
    }

    @Test("A browser gets a snapshot, and then every event under its name")
    func events() async throws {
        try await Harness.run { harness in
            let downloads = DownloadService(directory: FilePath(harness.directory))
            try await Self.serve(downloads) {
                let stuck = harness.origin.plainURL("/8M/a?stall-after=300000:all")
                let download = try await add(stuck, named: "a", to: downloads)
                await download.reached(1)
                var frames: [String] = []
                var isReleased = false
                try await sendEvents(of: download) { frame in
                    frames.append(frame)
                    guard frame.hasPrefix("event: progress\n"), !isReleased else { return }
                    isReleased = true
                    try await harness.release("/8M/a")
                }
                let names = try Self.names(frames)
                #expect(names.first == "snapshot" && names.last == "completed" && names.contains("progress"))
            }
        }
    }

    @Test("A shutdown ends the events of a download that continues")
    func eventsEnd() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest())
                try await testGracefulShutdown { trigger in
                    try await sendEvents(of: download) { frame in
                        if frame.hasPrefix("event: progress") { trigger.triggerGracefulShutdown() }
                    }
                }
                #expect(download.outcome == nil)
                await download.pause()
            }
        }
    }

    @Test("A file is passed on after its length")
    func passesOn() async throws {
        try await Harness.run { harness in
            let downloads = DownloadService(directory: FilePath(harness.directory))
            let source = try SourceURL(harness.origin.plainURL("/1M/file.bin"))
            try await Self.serve(downloads) {
                var length: Int64?
                var count = 0
                try await pass(source, from: downloads) {
                    length = $0
                } to: { piece in
                    #expect(length == 1.mebibytes)
                    count += piece.count
                }
                #expect(count == 1 << 20)
            }
            #expect(try harness.names().isEmpty)
        }
    }

    @Test("A program is tested without a network, also in the middle of a download")
    func withoutNetwork() async throws {
        try await withTemporaryDirectory { directory in
            let url = "https://example.org/file.bin"
            let files = [try SourceURL(url): InMemoryTransport.File(Array(0..<100))]
            let served = service(serving: files, in: FilePath(directory))
            try await Self.serve(served) {
                let result = try await add(url, named: "whole", to: served).result()
                #expect(result.bytes == 100)
            }

            let (pieces, continuation) = AsyncStream.makeStream(of: [UInt8].self)
            var configuration = DownloadConfiguration()
            configuration.transport = ManualTransport(length: 200, pieces: pieces)
            let manual = DownloadService(configuration, directory: FilePath(directory))
            try await Self.serve(manual) {
                let download = try await add(url, named: "pieces", to: manual)
                continuation.yield(Array(0..<100))
                await download.reached(100)
                #expect(download.snapshot.bytesDone == 100 && download.outcome == nil)
                continuation.yield(Array(100..<200))
                continuation.finish()
                #expect(try await download.result().bytes == 200)
            }
        }
    }
}
