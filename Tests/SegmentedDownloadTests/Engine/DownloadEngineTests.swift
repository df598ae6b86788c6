import SegmentedDownloadCore
import Synchronization
import TestSupport
import Testing

@testable import SegmentedDownload

/// The engine's loop, without a network.
@Suite("The engine")
struct DownloadEngineTests {
    @Test("A step on disk that cannot be done ends the download with its reason")
    func failedStep() async throws {
        try await withTemporaryDirectory { directory in
            let client = DownloadClient(
                configuration: DownloadConfiguration(), transport: EngineOffice.NoTransport(),
                storage: WatchedStorage(), clock: SystemClock(), seed: 1)
            let request = DownloadRequest(try SourceURL("http://host/file.bin"), to: .file(directory))
            do {
                _ = try await client.download(request)
                Issue.record("a directory was replaced by a file")
            } catch let error as DownloadError {
                #expect(error.code == .exists && error.message.contains("is a directory"))
            }
        }
    }

    /// Runs `body` with a download whose connections have all received a piece, and wait for the next.
    ///
    /// - Returns: The name of the thread that closed the part.
    private static func closer(
        _ body: @Sendable (Download, ContentTransport, WatchedStorage) async throws -> Void
    ) async throws -> String? {
        try await withTemporaryDirectory { directory in
            let transport = ContentTransport(length: 8 << 20) { transport, offset, start in
                if offset > start { try await transport.holdIfAsked() }
            }
            transport.isHolding = true
            let disk = WatchedStorage()
            let name = Mutex<String?>(nil)
            disk.before("close file.bin.segdl-part") { name.withLock { $0 = threadName() } }
            try await EngineThreads.withThreads { threads in
                let client = DownloadClient(
                    configuration: transport.configuration, transport: TransportAdapter(transport), storage: disk,
                    clock: SystemClock(), seed: 1, threads: threads)
                try await client.withGroup { group in
                    let download = try group.add(transport.request(in: directory))
                    while transport.held.count < 4 { await Task.yield() }
                    try await body(download, transport, disk)
                }
            }
            #expect(disk.openNames.isEmpty)
            return name.withLock { $0 }
        }
    }

    @Test("The part of a paused download is closed by a thread for the disk, before it is told to be paused")
    func closesPaused() async throws {
        let name = try await Self.closer { download, _, disk in
            let events = download.events
            download.requestPause()
            for await event in events {
                guard case .paused(let progress) = event else { continue }
                #expect(disk.openNames.isEmpty && progress.bytesDone > 0)
            }
            #expect(download.state == .paused)
        }
        #expect(name?.hasPrefix("TP-#") == true, "\(name ?? "no thread")")
    }

    @Test("A download that is resumed while its part is being closed goes on once it is closed")
    func resumesWhileClosing() async throws {
        let name = try await Self.closer { download, transport, disk in
            // The manifest is closed before the part, and the part is still locked.
            disk.before("close file.bin.segdl-new") { _ = download.resume() }
            await download.pause()
            // Until a new connection waits for its next piece.
            while transport.held.count == transport.held.cancelled { await Task.yield() }
            #expect(download.state == .running)
            await download.pause()
            #expect(download.state == .paused && disk.openNames.isEmpty)
        }
        #expect(name?.hasPrefix("TP-#") == true, "\(name ?? "no thread")")
    }

    @Test("A snapshot that is requested after the engine has ended is empty")
    func endedSnapshot() async throws {
        let kept = Mutex<Download?>(nil)
        _ = try await Self.closer { download, _, _ in
            #expect(await download.engine.segments(of: download.job).isEmpty == false)
            await download.pause()
            kept.withLock { $0 = download }
        }
        let download = try #require(kept.withLock { $0 })
        #expect(await download.engine.segments(of: download.job).isEmpty)
    }
}
