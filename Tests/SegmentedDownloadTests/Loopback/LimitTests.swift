import Origin
import Testing

@testable import SegmentedDownload

/// Limits, and their changes during downloads.
@Suite struct LimitTests {
    @Test("The last limits set apply")
    func current() async throws {
        try await withDownloadClient { client in
            await client.withGroup { group in
                #expect(group.limits == DownloadLimits())
                var limits = DownloadLimits()
                limits.connections = 3
                limits.bytesPerSecond = 1 << 20
                group.update(limits)
                #expect(group.limits == limits)
            }
        }
    }

    @Test("A number of files at once that is set is exact, unless more short ones are allowed after it")
    func files() {
        var limits = DownloadLimits()
        #expect(limits.group.downloads == 5 && limits.group.shortDownloads == 16)
        limits.downloads = 7
        #expect(limits.group.downloads == 7 && limits.group.shortDownloads == 7)
        limits.shortDownloads = 20
        #expect(limits.group.downloads == 7 && limits.group.shortDownloads == 20 && limits.downloadsMax == 20)
        limits.tasks = 2
        #expect(limits.group.shortDownloads == 7, "the tasks of a job share the server")
    }

    @Test(
        "After fewer connections and then more in the middle of a file it is right, and at most one chunk per closed connection is fetched twice"
    )
    func connections() async throws {
        try await Harness.run { harness in
            // Each response stops after this number of bytes, so that the bytes received do not depend on the machine's
            // speed.
            let piece: Int64 = 300_000
            try await harness.withGroup { group in
                let download = try group.add(
                    harness.request("/64M/file.bin?stall-after=\(piece):all") {
                        $0.segments = .exactly(8)
                        $0.stallTimeout = .seconds(3600)
                    })
                var limits = group.limits
                // Closed connections have received their piece; the ones opened in their place receive the next pieces.
                for (connections, pieces) in [(8, 8), (2, 8), (8, 14), (1, 14), (8, 21)] as [(Int, Int64)] {
                    limits.connections = connections
                    group.update(limits)
                    for await event in download.events {
                        guard case .progress(let progress) = event else { continue }
                        if progress.connections == connections, progress.bytesDone >= pieces * piece { break }
                    }
                }
                await download.pause()
                #expect(download.snapshot.bytesDone >= 21 * piece)
            }
            let saved = try await SavedDownload(at: FilePath(harness.path))
            let sent = harness.origin.log.snapshot()
            // A connection that was replaced as too slow may have been cut in the middle of its piece.
            let replaced = Int64(sent.requests.count) - 21
            #expect(sent.bytesSent - saved.bytesDone <= max(replaced, 0) * piece, "\(replaced) were replaced")
            harness.origin.log.reset()
            let result = await harness.fetch("/64M/file.bin?")
            #expect(result.code == nil, "\(result)")
            #expect(harness.bytesRequested(of: 64.mebibytes) == 64.mebibytes - saved.bytesDone)
            #expect(harness.contains(seed: 1, length: 64.mebibytes))
        }
    }

    @Test("A download that waits for its rate limit pauses at once, and continues when the limit is lifted")
    func heldBack() async throws {
        try await Harness.run { harness in
            // A week for the file: only operations that do not wait for its bytes can end.
            let request = try harness.request("/4M/file.bin?") { $0.bytesPerSecond = 7 }
            try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    for await event in download.events {
                        if case .progress = event { await download.pause() }
                    }
                    #expect(download.state == .paused)
                    download.resume()
                    download.update(bytesPerSecond: nil)
                    #expect(try await download.result().bytes == 4.mebibytes)
                }
            }
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
        }
    }

    @Test("A download that waits for its rate continues when the group's limit is lifted")
    func lifted() async throws {
        try await Harness.run { harness in
            let request = try harness.request("/4M/file.bin?")
            var configuration = DownloadConfiguration()
            configuration.limits.bytesPerSecond = 7
            configuration.limits.bytesPerSecondPerHost = 9
            try await withDownloadClient(configuration) { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    for await event in download.events {
                        if case .progress = event { group.update(DownloadLimits()) }
                    }
                    #expect(try await download.result().bytes == 4.mebibytes)
                }
            }
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
        }
    }

    @Test("A file's connections and priority can be changed while it is fetched")
    func segments() async throws {
        try await Harness.run { harness in
            let request = try harness.request("/16M/file.bin?rate=2M") { $0.segments = .exactly(1) }
            let result = try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    for await event in download.events {
                        guard case .progress(let progress) = event, progress.connections == 1 else { continue }
                        download.update(segments: .exactly(4))
                        download.update(priority: 1)
                    }
                    return try await download.result()
                }
            }
            #expect(result.connectionsPeak == 4)
            #expect(harness.contains(seed: 1, length: 16.mebibytes))
        }
    }
}
