import Foundation
import Origin
import TestSupport
import Testing

@testable import SegmentedDownload

/// Defects of the five libraries that this one descends from.
@Suite struct AncestorDefectTests {
    @Test("Each observer receives every event of a download")
    func manyObservers() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                // Two at once, to detect events of the wrong download.
                let downloads = try ["a", "b"].map { name in
                    try group.add(
                        paused: harness.request("/4M/\(name)") {
                            $0.destination = .file(harness.directory + "/" + name)
                        })
                }
                downloads.forEach { $0.resume() }
                let streams = downloads.map { download in (0..<8).map { _ in download.events } }
                for (download, streams) in zip(downloads, streams) {
                    var all: [[DownloadEvent]] = []
                    for stream in streams {
                        var events: [DownloadEvent] = []
                        for await event in stream { events.append(event) }
                        all.append(events)
                    }
                    let endings = all.map { $0.filter(\.isTerminal).count }
                    #expect(endings == Array(repeating: 1, count: 8))
                    // The first one listened from the start, and the others from some moment shortly after.
                    let longest = try #require(all.max { $0.count < $1.count })
                    #expect(all.allSatisfy { $0.elementsEqual(longest.suffix($0.count)) && $0.count > 4 })
                    let paths = longest.compactMap {
                        switch $0 {
                        case .started(let start): start.path
                        case .completed(let result): result.path
                        case .progress, .segment, .retrying, .checkpoint, .note, .state, .paused, .failed, .cancelled:
                            nil
                        }
                    }
                    #expect(paths == [download.path, download.path])
                }
            }
        }
    }

    @Test("Progress has no fraction and no time left where the length is unknown, never a negative one")
    func unknownLength() async throws {
        var progress = DownloadProgress()
        progress.bytesDone = 1000
        progress.rate = 10
        #expect(progress.fraction == nil && progress.timeLeft == nil)
        progress.bytesTotal = 0
        #expect(progress.fraction == 1)
        progress.bytesTotal = 4000
        #expect(progress.fraction == 0.25 && progress.timeLeft == .seconds(300))
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let stalled = try group.add(harness.request("/2M/half.bin?ranges=no&length=none&stall-after=1M"))
                while stalled.snapshot.bytesDone == 0 { await Task.yield() }
                let half = stalled.snapshot
                #expect(half.fraction == nil && half.timeLeft == nil && half.bytesTotal == nil)
                await stalled.cancel(keepingPartial: false)
                let download = try group.add(harness.request("/2M/file.bin?ranges=no&length=none"))
                for await event in download.events {
                    if case .progress(let progress) = event { #expect(progress.bytesTotal == nil) }
                    if case .started(let start) = event { #expect(start.bytesTotal == nil) }
                }
                #expect(download.snapshot.bytesTotal == 2.mebibytes && download.snapshot.fraction == 1)
            }
        }
    }

    @Test("A download whose every source fails has failed once")
    func failsOnce() async throws {
        try await Harness.run { harness in
            let events = try await harness.withGroup { group in
                let events = group.events
                var request = try harness.request("/1M/file.bin?fail=404:all")
                for name in ["m", "n"] {
                    request.mirrors.append(try SourceURL(harness.origin.url("/1M/\(name)?fail=404:all")))
                }
                await code { try await group.add(request).result() }
                return events
            }
            var failures = 0
            for await case .download(_, .failed) in events { failures += 1 }
            #expect(failures == 1)
        }
    }

    @Test("A file that takes longer than every time limit is fetched, as long as bytes keep coming")
    func longerThanEveryTimeout() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/2M/file.bin?rate=1M") {
                $0.segments = .exactly(1)
                $0.stallTimeout = .seconds(1)
                $0.headTimeout = .seconds(1)
                // On a busy machine any connection may be silent for a second.
                $0.retries = 1000
                $0.retryDelay = .milliseconds(1)
            }
            let value = try #require(result.value)
            #expect(value.bytes == 2.mebibytes && value.duration > .seconds(1))
            #expect(harness.contains(seed: 1, length: 2.mebibytes))
        }
    }

    @Test("A part stays until another one has bytes, however the resumed transfer ends")
    func resumeDataStays() async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Harness.stuck, after: 1.mebibytes) { $0.stallTimeout = .seconds(3600) }
            let part = try harness.bytes(harness.part)
            let saved = try await SavedDownload(at: FilePath(harness.path))
            for trouble in ["fail=500:all", "reset-after=0:all", "no-answer=1000", "redirect=302:/gone?fail=404:all"] {
                let result = await harness.fetch("/8M/file.bin?\(trouble)") {
                    $0.retries = 1
                    $0.headTimeout = .seconds(1)
                }
                #expect(result.code != nil, "\(trouble)")
                #expect(try harness.bytes(harness.part) == part, "\(trouble)")
                #expect(try await SavedDownload(at: FilePath(harness.path)).bytesDone == saved.bytesDone, "\(trouble)")
            }
            harness.origin.log.reset()
            let result = await harness.fetch("/8M/file.bin")
            #expect(result.code == nil, "\(result)")
            #expect(harness.bytesRequested(of: 8.mebibytes) == 8.mebibytes - saved.bytesDone)
        }
    }

    @Test("A finished download is not listed if the policy says so")
    func finishedAreRemoved() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.history.listsFinished = false
            try await harness.withGroup(configuration) { group in
                for name in 0..<20 {
                    try group.add(
                        harness.request("/1/\(name)") { $0.destination = .file(harness.directory + "/\(name)") })
                }
                #expect(await group.waitForAll().completed == 20)
                #expect(group.downloads.isEmpty)
            }
        }
    }
}
