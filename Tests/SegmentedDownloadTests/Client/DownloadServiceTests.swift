import NIOCore
import NIOPosix
import Origin
import SegmentedDownload
import SegmentedDownloadService
import ServiceLifecycle
import ServiceLifecycleTestKit
import TestSupport
import Testing

@Suite("A service that downloads until it is shut down")
struct DownloadServiceTests {
    /// Runs a service beside `body`, and ends it.
    private static func run(
        _ service: DownloadService, _ body: @Sendable () async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await service.run() }
            do {
                try await body()
            } catch {
                service.shutdown()
                throw error
            }
            service.shutdown()
            try await tasks.waitForAll()
        }
    }

    @Test("A service creates its directory and fetches an added download")
    func fetches() async throws {
        try await Harness.run { harness in
            let directory = harness.directory + "/new"
            let service = DownloadService(directory: FilePath(directory))
            let source = try SourceURL(harness.origin.plainURL("/1M/file.bin"))
            try await Self.run(service) {
                let download = try await service.downloads().add(DownloadRequest(source))
                #expect(try await download.result().path.string == directory + "/file.bin")
            }
            #expect(await code { try await service.downloads() } == .cancelled)
        }
    }

    @Test("A shutdown pauses what runs, and the next service resumes it")
    func pauses() async throws {
        try await Harness.run { harness in
            let service = DownloadService(directory: FilePath(harness.directory))
            let request = try harness.stuckRequest()
            try await Self.run(service) {
                let download = try await service.downloads().add(request)
                for await case .progress(let progress) in download.events where progress.bytesDone > 0 { break }
            }
            #expect(try harness.names() == ["file.bin.segdl", "file.bin.segdl-part"])
            let kept = try await SavedDownload(at: FilePath(harness.path)).bytesDone
            harness.origin.log.reset()
            let next = DownloadService(directory: FilePath(harness.directory))
            let again = try harness.request("/8M/file.bin")
            try await Self.run(next) {
                let result = try await next.downloads().add(again).result()
                #expect(result.bytes == 8.mebibytes)
            }
            #expect(kept > 0 && harness.bytesRequested(of: 8.mebibytes) == 8.mebibytes - kept)
        }
    }

    @Test("Nothing can be added once the shutdown has begun")
    func closed() async throws {
        try await Harness.run { harness in
            let service = DownloadService(directory: FilePath(harness.directory))
            let request = try harness.request("/1M/file.bin")
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await service.run() }
                let group = try await service.downloads()
                service.shutdown()
                try await tasks.waitForAll()
                #expect(await code { try group.add(request) } == .cancelled)
            }
        }
    }

    @Test("It runs once, and ends at once if it was shut down before")
    func once() async throws {
        let service = DownloadService()
        service.shutdown()
        service.shutdown()
        try await service.run()
        #expect(await code { try await service.run() } == .usage)
    }

    @Test("A shutdown before it has run ends the wait for its downloads")
    func shutDownUnused() async throws {
        let service = DownloadService()
        let waiting = Task { await code { try await service.downloads() } }
        service.shutdown()
        #expect(await waiting.value == .cancelled)
        #expect(await code { try await service.downloads() } == .cancelled)
    }

    @Test("A configuration that is invalid ends the service, and who waits for it gets the same error")
    func invalid() async throws {
        var configuration = DownloadConfiguration()
        configuration.trust.authorityFile = "/nonexistent/authorities.pem"
        let service = DownloadService(configuration)
        let waiting = Task { await code { try await service.downloads() } }
        #expect(await code { try await service.run() } == .usage)
        #expect(await waiting.value == .usage)
        #expect(await code { try await service.client() } == .usage)
    }

    @Test("A service's client looks at a file before it is added, and is not there after the service")
    func client() async throws {
        try await Harness.run { harness in
            let service = DownloadService(directory: FilePath(harness.directory))
            let request = try harness.request("/1M/file.bin")
            try await Self.run(service) {
                let file = try await service.client().probe(request)
                #expect(file.length == 1.mebibytes && file.supportsRanges)
            }
            #expect(await code { try await service.client() } == .cancelled)
        }
    }

    @Test("A service does not list finished downloads, unless its policy says so", arguments: [nil, false, true])
    func listing(lists: Bool?) async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.history.listsFinished = lists
            let service = DownloadService(configuration, directory: FilePath(harness.directory))
            let request = try harness.request("/1M/file.bin")
            try await Self.run(service) {
                let group = try await service.downloads()
                let download = try group.add(request)
                _ = try await download.result()
                #expect(group.downloads.count == (lists == true ? 1 : 0))
                #expect(download.outcome?.name == "completed")
            }
        }
    }

    @Test("In a service group, a graceful shutdown pauses the downloads")
    func lifecycle() async throws {
        try await Harness.run { harness in
            let service = DownloadService(directory: FilePath(harness.directory))
            let request = try harness.stuckRequest()
            try await testGracefulShutdown { trigger in
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    tasks.addTask { try await DownloadServiceLifecycle(service).run() }
                    let download = try await service.downloads().add(request)
                    for await case .progress(let progress) in download.events where progress.bytesDone > 0 { break }
                    trigger.triggerGracefulShutdown()
                    try await tasks.waitForAll()
                    #expect(download.state == .paused)
                }
            }
        }
    }

    @Test("It makes its connections on event loops that it is given, and leaves them running")
    func eventLoops() async throws {
        let loops = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.eventLoopGroup = loops
            for name in ["a.bin", "b.bin"] {
                let result = try await harness.fetch("/1M/\(name)", configuration: configuration) {
                    $0.destination = .file(harness.directory + "/" + name)
                }.get()
                #expect(result.bytes == 1 << 20)
            }
        }
        try await loops.shutdownGracefully()
    }
}
