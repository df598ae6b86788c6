import Foundation
import Origin
import SegmentedDownload
import TestSupport
import Testing

/// Pausing, resuming and cancelling, for one download or all.
@Suite struct ControlTests {
    @Test("A pause returns a state to resume from, after everything fetched is on disk")
    func pauseIsDurable() async throws {
        try await Harness.run { harness in
            let stored = try await harness.withGroup { group in
                let download = try group.add(
                    harness.stuckRequest {
                        $0.id = "film"
                        $0.userInfo = ["title": "A"]
                    })
                await download.reached(1.mebibytes)
                let state = try #require(await download.pause())
                // The group still runs: only the pause made this durable.
                let saved = try await SavedDownload(at: FilePath(harness.path))
                #expect(saved.bytesDone == state.bytesDone && saved.bytesDone >= 1.mebibytes)
                #expect(saved.bytesTotal == 8.mebibytes && state.bytesTotal == 8.mebibytes)
                #expect(saved.bytesDurable == saved.bytesDone && download.snapshot.bytesDurable == saved.bytesDone)
                #expect(await download.pause() == state)
                return try JSONEncoder().encode(state)
            }
            harness.origin.log.reset()
            try await harness.release("/8M/file.bin")
            let state = try JSONDecoder().decode(ResumeState.self, from: stored)
            #expect(state.id == "film" && state.userInfo == ["title": "A"] && state.path.string == harness.path)
            try await harness.withGroup { group in
                let download = try group.add(resuming: state)
                #expect(download.id == "film")
                _ = try await download.result()
            }
            #expect(harness.bytesRequested(of: 8.mebibytes) == 8.mebibytes - state.bytesDone)
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test("A resume state holds no secret but the URL's own, and an altered one is refused")
    func resumeStateIsSafe() async throws {
        try await Harness.run { harness in
            let state = try await harness.withGroup { group in
                var request = DownloadRequest(
                    try SourceURL("http://user:secret@127.0.0.1:1/file?token=1"), to: .directory(harness.directory))
                request.fields = [.authorization: "Bearer secret"]
                return try group.add(paused: request).resumeState
            }
            let text = String(decoding: try JSONEncoder().encode(state), as: UTF8.self)
            #expect(!text.contains("secret"))
            let paths = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            #expect(paths["path"] as? String == harness.directory + "/file")
            #expect(paths["directory"] as? String == harness.directory)
            #expect(try state.request().destination == .directory(harness.directory))
            let altered = text.replacing("http:", with: "file:")
            let read = try JSONDecoder().decode(ResumeState.self, from: Data(altered.utf8))
            let refused = await code { try read.request() }
            #expect(refused == .policy)
        }
    }

    @Test("A resume state and a manifest keep every option")
    func optionsAreKept() async throws {
        try await Harness.run { harness in
            var options = DownloadOptions()
            options.segments = .exactly(2)
            options.priority = 0.25
            options.bytesPerSecond = 512 << 20
            options.splitLengthMinimum = 70_000
            options.digests = [try #require(ExpectedDigest("md5=00000000000000000000000000000000"))]
            options.computedDigests = [.sha1]
            options.retries = 3
            options.retryDelay = .milliseconds(400)
            options.retryTime = .seconds(50)
            options.stallTimeout = .seconds(6)
            options.headTimeout = .seconds(7)
            options.timeLimit = .seconds(800)
            options.lengthMaximum = 9.mebibytes
            options.lengthExpected = 8.mebibytes
            options.onChange = .restart
            options.ifExists = .fail
            options.createsDirectories = false
            options.keepsRemoteTime = true
            options.allocates = false
            options.syncPolicy = .end
            let kept = options
            let state = try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest { $0.options = kept })
                await download.reached(1)
                return try #require(await download.pause())
            }
            let read = try JSONDecoder().decode(ResumeState.self, from: JSONEncoder().encode(state))
            #expect(read == state && state.options == options)
            #expect(try read.request().options == options)
            #expect(try await SavedDownload(at: FilePath(harness.path)).options == options)
        }
    }

    @Test("A resume state of an earlier version is read")
    func earlierState() throws {
        let text = """
            {"id":"film","isNamed":true,"source":"http://a/b","mirrors":[],"path":"/x","userInfo":{},"priority":0.25,
            "segments":4,"continuation":"no","onChange":"restart","ifExists":"rename","digests":["crc32=00000001"],
            "retries":3,"stallTimeout":[0,5000000000000000000],"headTimeout":[1,1553255926290448384],
            "lengthMaximum":1000,"createsDirectories":false,"allocates":false,"bytesDone":5,"bytesTotal":10}
            """
        let request = try JSONDecoder().decode(ResumeState.self, from: Data(text.utf8)).request()
        #expect(request.id == "film" && request.priority == 0.25 && request.segments == .exactly(4))
        #expect(request.continuation == .auto && request.onChange == .restart && request.ifExists == .rename)
        #expect(request.digests.map(\.description) == ["crc32=00000001"] && request.retries == 3)
        #expect(request.stallTimeout == .seconds(5) && request.headTimeout == .seconds(20))
        #expect(request.lengthMaximum == 1000 && !request.createsDirectories && !request.allocates)
        #expect(request.syncPolicy == .checkpoint && request.retryDelay == nil)
    }

    @Test("Pausing, resuming or cancelling twice has the effect of once")
    func idempotent() async throws {
        try await Harness.run { harness in
            let events = try await harness.withGroup { group in
                let events = group.events
                let download = try group.add(harness.stuckRequest())
                await download.reached(1)
                async let first = download.pause()
                async let second = download.pause()
                let states = await [first, second, download.pause()]
                #expect(states.allSatisfy { $0 == states[0] && $0 != nil })
                download.resume()
                download.resume()
                await download.reached(1)
                async let cancelled: Void = download.cancel(keepingPartial: false)
                await download.cancel(keepingPartial: false)
                await cancelled
                await download.cancel(keepingPartial: true)
                #expect(await download.pause() == nil)
                download.resume()
                #expect(download.state == .cancelled)
                return events
            }
            var endings: [String] = []
            for await event in events {
                guard case .download(_, let event) = event, event.isTerminal else { continue }
                if case .paused = event { endings.append("paused") }
                if case .cancelled = event { endings.append("cancelled") }
            }
            #expect(endings == ["paused", "cancelled"])
            let left = try harness.names()
            #expect(left == [])
        }
    }

    @Test("Cancelling a paused download returns after its files are deleted")
    func cancelPaused() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest())
                await download.reached(1)
                await download.pause()
                #expect(harness.exists(harness.part) && harness.exists(harness.manifest))
                await download.cancel(keepingPartial: false)
                #expect(!harness.exists(harness.part) && !harness.exists(harness.manifest))
                #expect(download.state == .cancelled)
            }
        }
    }

    @Test("resume() returns whether the download was at rest, so that one button can resume or pause")
    func resumeOrPause() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest())
                await download.reached(1)
                #expect(!download.resume())
                await download.pause()
                #expect(download.state == .paused)
                // At once: the second call finds it resumed, even if the engine has not resumed it yet.
                #expect(download.resume())
                #expect(!download.resume())
                await download.pause()
                #expect(download.state == .paused)
                #expect(download.resume())
                await download.reached(1)
                #expect(download.state == .running)
                await download.cancel(keepingPartial: false)
                #expect(!download.resume())
                #expect(download.state == .cancelled)
            }
        }
    }

    @Test("A pause that is resumed while it settles releases its waiters")
    func pauseTakenBack() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest())
                // Each round may receive 1.2 MB: their sum is less than the file.
                for _ in 0..<5 {
                    await download.reached(1)
                    async let paused = download.pause()
                    download.resume()
                    _ = await paused
                    download.resume()
                }
                await download.reached(1)
                #expect(download.state == .running)
                await download.cancel(keepingPartial: false)
            }
        }
    }

    @Test("All are paused, resumed and cancelled at once")
    func all() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.limits.downloads = 2
            try await harness.withGroup(configuration) { group in
                let downloads = try ["a", "b", "c"].map { try group.add(harness.stuckRequest($0)) }
                await downloads[0].reached(1)
                await downloads[1].reached(1)
                let states = await group.pauseAll()
                #expect(states.map(\.path) == downloads.map(\.path))
                #expect(downloads.allSatisfy { $0.state == .paused })
                #expect(states[0].bytesDone > 0 && states[1].bytesDone > 0)
                #expect(await group.pauseAll() == states)
                #expect(await group.waitForAll().paused == 3)
                group.resumeAll()
                await downloads[0].reached(1)
                await downloads[1].reached(1)
                await group.cancelAll(keepingPartial: false)
                #expect(downloads.allSatisfy { $0.state == .cancelled })
                let left = try harness.names()
                #expect(left == [])
                group.resumeAll()
                #expect(await group.waitForAll().cancelled == 3)
            }
        }
    }

    @Test("Resuming with nothing to resume starts over, or fails where it must continue; never both")
    func nothingToResume() async throws {
        for continuation in DownloadOptions.Continuation.allCases {
            try await Harness.run { harness in
                try await harness.interrupt(Harness.stuck, after: 1) { $0.stallTimeout = .seconds(3600) }
                let (download, events) = try await harness.withGroup { group in
                    let events = group.events
                    let request = try harness.stuckRequest { $0.continuation = continuation }
                    let download = try group.add(request)
                    await download.reached(1)
                    await download.pause()
                    try harness.remove(harness.part)
                    try harness.remove(harness.manifest)
                    download.resume()
                    if continuation == .must {
                        try await download.rest()
                    } else {
                        await download.reached(1)
                        await download.cancel(keepingPartial: false)
                    }
                    return (download, events)
                }
                var afterwards: [DownloadEvent] = []
                var hasPaused = false
                for await case .download(_, let event) in events {
                    if hasPaused { afterwards.append(event) }
                    if case .paused = event { hasPaused = true }
                }
                let failures = afterwards.filter { if case .failed = $0 { true } else { false } }
                let starts = afterwards.compactMap {
                    if case .started(let start) = $0 { start.resumedFrom } else { nil }
                }
                #expect(failures.count == (continuation == .must ? 1 : 0), "\(continuation): \(afterwards)")
                #expect(starts == (continuation == .must ? [] : [0]), "\(continuation)")
                #expect(download.state == (continuation == .must ? .failed : .cancelled))
            }
        }
    }

    @Test("A download that must start over does so once: resumed, it keeps the bytes it has fetched itself")
    func beginsAnewOnce() async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Harness.stuck, after: 1.mebibytes) { $0.stallTimeout = .seconds(3600) }
            try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest { $0.continuation = .no })
                await download.reached(1.mebibytes)
                let state = try #require(await download.pause())
                let events = download.events
                download.resume()
                let resumed = download.events
                for await event in resumed {
                    guard case .started(let start) = event else { continue }
                    #expect(start.resumedFrom == state.bytesDone)
                    await download.cancel(keepingPartial: false)
                }
                for await event in events {
                    #expect(event.isTerminal, "an observer of the paused download receives the pause")
                }
            }
        }
    }

    @Test("A queued download can be moved to the front or before another")
    func reorder() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.limits.downloads = 1
            let events = try await harness.withGroup(configuration) { group in
                let events = group.events
                let first = try group.add(harness.stuckRequest("first"))
                await first.reached(1)
                let rest = try ["b", "c", "d"].map { name in
                    try group.add(
                        harness.request("/100/\(name)") { $0.destination = .file(harness.directory + "/" + name) })
                }
                rest[2].moveToFront()
                rest[1].move(before: rest[0])
                first.moveToFront()
                await first.cancel(keepingPartial: false)
                #expect(await group.waitForAll().completed == 3)
                return events
            }
            var order: [String] = []
            for await case .download(let download, .started) in events {
                order.append(String(download.path.string.suffix(1)))
            }
            #expect(order == ["t", "d", "c", "b"])
        }
    }

    @Test("No more downloads run than allowed, and the next begins when one ends")
    func downloadsAtOnce() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.limits.downloads = 2
            let events = try await harness.withGroup(configuration) { group in
                let events = group.events
                for name in 0..<8 {
                    try group.add(
                        harness.request("/1M/\(name)") { $0.destination = .file(harness.directory + "/\(name)") })
                }
                #expect(await group.waitForAll().completed == 8)
                return events
            }
            var running: Set<Download.ID> = []
            var most = 0
            for await case .download(let download, .state(let state)) in events {
                switch state {
                case .probing, .running, .retrying, .verifying: running.insert(download.id)
                case .queued, .paused, .completed, .failed, .cancelled: running.remove(download.id)
                }
                most = max(most, running.count)
            }
            #expect(most == 2)
        }
    }
}
