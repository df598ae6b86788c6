import Origin
import SegmentedDownload
import Testing

/// Limits that hold, and that change while files come.
@Suite struct LimitTests {
    @Test("Limits are what they were last said to be")
    func current() async throws {
        try await withDownloadClient { client in
            try await client.withGroup { group in
                #expect(group.limits == DownloadLimits())
                var limits = DownloadLimits()
                limits.connections = 3
                limits.bytesPerSecond = 1 << 20
                group.update(limits)
                #expect(group.limits == limits)
            }
        }
    }

    @Test(
        "Fewer connections, and then more, in the middle of a file: it is right, and none of it comes twice but a piece a cut"
    )
    func connections() async throws {
        try await Harness.run { harness in
            let request = try harness.request("/48M/file.bin?rate=2M") { $0.segments = .exactly(8) }
            let (seen, result) = try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    // Each limit is kept to before the next one is set.
                    var seen: [Int] = []
                    for await event in download.events {
                        guard case .progress(let progress) = event, seen.count < 5,
                            progress.connections == [8, 2, 8, 1, 8][seen.count]
                        else { continue }
                        seen.append(progress.connections)
                        var limits = DownloadLimits()
                        limits.connections = [2, 64, 1, 64, 64][seen.count - 1]
                        group.update(limits)
                    }
                    return (seen, try await download.result())
                }
            }
            #expect(seen == [8, 2, 8, 1, 8])
            #expect(harness.contains(seed: 1, length: 48.mebibytes))
            #expect(result.connectionsPeak == 8)
            // Each request but the last of a segment was cut, and had at most a piece in hand that is fetched again.
            let extra = result.bytesFetched - 48.mebibytes
            #expect(extra >= 0 && extra <= Int64(result.requests) << 20, "\(extra) in \(result.requests) requests")
        }
    }

    @Test("Who is held back by a rate can be paused at once, and goes on once the limit is lifted")
    func heldBack() async throws {
        try await Harness.run { harness in
            // A week for the file: only what does not wait for its bytes can end.
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

    @Test("What waits for a rate is let through when the group's limit is lifted")
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

    @Test("A file's connections and priority can be changed while it comes")
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
