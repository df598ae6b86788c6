import Origin
import SegmentedDownload
import Testing

/// Faults of networks and servers on connections (FAULTS C, D).
@Suite struct ConnectionFaultTests {
    @Test(
        "A broken connection is replaced and continues at the next byte",
        arguments: [
            "reset-after=300000:all", "close-after=300000:all", "reset-after=1000000:3", "drop=2", "fail=503:2",
        ])
    func goesOn(behaviour: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/4M/file.bin?\(behaviour)")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
        }
    }

    @Test("A stalled connection is replaced")
    func stall() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/4M/file.bin?stall-after=500000:2") {
                $0.stallTimeout = .milliseconds(500)
                $0.retries = 1000
            }
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
        }
    }

    @Test("A connection far slower than the others is replaced")
    func straggler() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/8M/file.bin?rate=2M&slow=2:10000")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test("An origin without progress fails the download after the allowed attempts, and the received bytes are kept")
    func givesUp() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/4M/file.bin?fail=500:all:3") { $0.retries = 1 }
            #expect(result.code == .server || result.code == nil, "\(result)")
            let outcome1 = await harness.fetch("/4M/other.bin?drop=1000") { $0.retries = 1 }
            #expect(outcome1.code == .network)
            #expect(harness.origin.log.snapshot(path: "/4M/other.bin").requests.count == 2)
        }
    }

    @Test("segdl adapts to the origin's limit of connections with few refusals")
    func concurrencyLimit() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/12M/file.bin?rate=3M&limit=2&retry-after=1") {
                $0.segments = .exactly(8)
            }
            #expect(result.code == nil, "\(result)")
            // One more connection is tried after 1 s, 2 s, 4 s, and late bytes are requested on another one at most
            // every second.
            let seconds = result.value?.duration.components.seconds ?? 0
            #expect(harness.origin.log.snapshot().rejected <= 10 + Int(seconds))
            #expect(harness.contains(seed: 1, length: 12.mebibytes))
        }
    }

    @Test(
        "A refusal is reported with its cause, and its body is not stored",
        arguments: [(404, DownloadError.Code.server), (410, .server), (403, .server), (401, .auth), (451, .server)])
    func refusals(status: Int, code: DownloadError.Code) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/1M/file.bin?fail=\(status):all")
            #expect(result.code == code)
            #expect(!harness.exists(harness.path) && !harness.exists(harness.part))
        }
    }

    @Test("An excessive Retry-After fails the download")
    func endlessRetryAfter() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/1M/file.bin?fail=503:all&retry-after=999999999999")
            #expect(result.code == .server)
        }
    }

    @Test("A response head has a deadline, however slowly it arrives")
    func slowHead() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/1M/file.bin?no-answer=1") {
                $0.headTimeout = .milliseconds(400)
                // On a busy machine any head may be late.
                $0.retries = 1000
                $0.retryDelay = .milliseconds(1)
            }
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 1.mebibytes))
        }
    }

    @Test("An unreachable host is a network failure without delay")
    func refusedConnection() async throws {
        try await Harness.run { harness in
            try await harness.origin.stopAccepting()
            let result = await harness.fetch("/1M/file.bin") { $0.retries = 1 }
            #expect(result.code == .network)
            #expect("\(result)".contains("connection refused"), "\(result)")
        }
    }
}
