import Origin
import SegmentedDownload
import TestSupport
import Testing

/// The positions of a download's segments, for displays.
@Suite struct SegmentStatusTests {
    /// Whether the segments are adjacent from the first byte to the last.
    private static func cover(_ segments: [SegmentStatus], _ length: Int64) -> Bool {
        var next: Int64? = 0
        for segment in segments {
            guard segment.start == next, segment.start...(segment.end ?? .max) ~= segment.position else { return false }
            next = segment.end
        }
        return next == length
    }

    private static func written(_ segments: [SegmentStatus]) -> Int64 {
        segments.reduce(0) { $0 + $1.position - $1.start }
    }

    @Test("Segments show the position of each connection, and bytes of an earlier run are done")
    func fetching() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest())
                // Each of the four connections receives this number of bytes. If one is so late that segdl replaces
                // another that seems slow beside it, that one's segment receives them once more.
                await download.reached(4 * 300_000)
                let segments = await download.segments
                let starts = harness.origin.log.snapshot().requests.compactMap {
                    $0.range.flatMap { Int64($0.dropFirst("bytes=".count).prefix { $0 != "-" }) }
                }
                #expect(Self.cover(segments, 8.mebibytes) && segments.count == 4, "\(segments)")
                for segment in segments {
                    let connections = starts.count { (segment.start..<(segment.end ?? .max)).contains($0) }
                    let most = segment.start + Int64(connections) * 300_000
                    #expect(starts.count > 4 ? segment.position <= most : segment.position == most, "\(segments)")
                }
                #expect(Self.written(segments) >= 4 * 300_000, "\(segments)")
                #expect(segments.allSatisfy { $0.state == .fetching && $0.source == 0 }, "\(segments)")
                let kept = try #require(await download.pause()).bytesDone
                #expect(await download.segments.isEmpty)
                download.resume()
                await download.reached(kept + 1)
                let resumed = await download.segments
                #expect(Self.cover(resumed, 8.mebibytes), "\(resumed)")
                let done = resumed.filter { $0.state == .done }
                #expect(Self.written(done) == kept && done.allSatisfy { $0.source == nil }, "\(resumed)")
                #expect(Self.written(resumed) > kept && resumed.contains { $0.state == .fetching }, "\(resumed)")
                await download.cancel(keepingPartial: false)
                #expect(await download.segments.isEmpty)
            }
        }
    }

    @Test("A segment that waits for its next attempt has the state retrying")
    func retrying() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let events = group.events
                let url = "/8M/file.bin?close-after=300000&fail=503:all:1"
                let download = try group.add(
                    harness.request(url) {
                        $0.segments = .exactly(1)
                        $0.retryDelay = .seconds(3600)
                    })
                for await case .download(_, .state(.retrying)) in events { break }
                let segments = await download.segments
                #expect(Self.cover(segments, 8.mebibytes), "\(segments)")
                #expect(segments.map(\.state) == [.retrying] && segments.map(\.source) == [nil], "\(segments)")
                // The last bytes sent may be lost with the connection.
                #expect(segments.allSatisfy { (1...300_000).contains($0.position) }, "\(segments)")
                await download.cancel(keepingPartial: false)
            }
        }
    }

    @Test("A complete file is one segment that is done, and there is none before the length is known")
    func ends() async throws {
        try await Harness.run { harness in
            let whole = try await harness.withGroup { group in
                let paused = try group.add(paused: harness.request("/1M/other.bin"))
                #expect(await paused.segments.isEmpty)
                let download = try group.add(
                    harness.request("/1M/file.bin") { $0.destination = .file(harness.directory + "/whole.bin") })
                _ = try await download.result()
                return download
            }
            // This also holds after the group has ended.
            let segments = await whole.segments
            #expect(
                segments == [
                    SegmentStatus(segment: 0, start: 0, position: 1.mebibytes, end: 1.mebibytes, state: .done)
                ])
        }
    }

    @Test("Segments can be read while a download stops")
    func looking() async throws {
        try await Harness.run { harness in
            let download = try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest())
                await download.reached(1)
                await withTaskGroup(of: Void.self) { tasks in
                    for _ in 0..<4 {
                        tasks.addTask { while !download.state.isAtRest { _ = await download.segments } }
                    }
                    await download.pause()
                }
                return download
            }
            #expect(await download.segments.isEmpty)
        }
    }
}
