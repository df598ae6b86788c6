import Origin
import SegmentedDownload
import TestSupport
import Testing

/// How a download came to rest, for callers that ask, wait, or are cancelled while they wait.
@Suite struct OutcomeTests {
    @Test("A download has an outcome while it is at rest: paused, failed or completed")
    func outcome() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let download = try group.add(paused: harness.stuckRequest())
                #expect(download.outcome == .paused(download.snapshot) && !download.isStream)
                download.resume()
                #expect(download.outcome == nil)
                await download.reached(1)
                #expect(download.outcome == nil)
                try await harness.release("/8M/file.bin")
                let result = try await download.result()
                #expect(download.outcome == .completed(result))
                let end = try await download.rest()
                #expect(end == .completed(result))

                let failed = try group.add(
                    harness.request("/1M/b?fail=503:all&retry-after=7") {
                        $0.destination = .file(harness.directory + "/b")
                        $0.retries = 0
                    })
                let error = try await failed.rest()
                #expect(failed.outcome == error)
                guard case .failed(let error, _) = failed.outcome else {
                    Issue.record("the outcome is \(String(describing: failed.outcome))")
                    return
                }
                #expect(error.status == 503 && error.retryAfter == .seconds(7))
            }
        }
    }

    @Test("A caller that is cancelled while it waits gets an error, and the download continues")
    func cancelledWait() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest())
                await download.reached(1)
                let waiting = [
                    Task { await code { try await download.rest() } },
                    Task { await code { try await download.result() } },
                ]
                for task in waiting {
                    task.cancel()
                    #expect(await task.value == .cancelled)
                }
                #expect(download.outcome == nil && !download.state.isAtRest)
                try await harness.release("/8M/file.bin")
                #expect(try await download.result().bytes == 8.mebibytes)
            }
        }
    }

    @Test("Cancelling keeps what was fetched unless told otherwise")
    func keepsPart() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest())
                await download.reached(1)
                await download.cancel()
                #expect(download.outcome == .cancelled)
            }
            #expect(harness.exists(harness.part))
        }
    }
}
