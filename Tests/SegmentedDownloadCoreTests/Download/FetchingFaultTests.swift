import Testing

@testable import SegmentedDownloadCore

/// Connections that fail or stall, and servers that refuse.
@Suite("Faults while segments are fetched")
struct FetchingFaultTests {
    @Test("A stalled lease is revoked, and another connection fetches the rest from the exact byte")
    func replacesStalled() {
        var script = Script.receiving(2)
        script.wait(.seconds(1))
        script.progress(0, to: 5_000_001)
        script.progress(1, to: 40 << 20)
        _ = script.take()
        for second in 0..<32 {
            script.progress(1, to: 40 << 20 + Int64(second))
            script.wait(.seconds(1))
        }
        #expect(script.take().contains(.revoke(LeaseID(0))))
        script.end(0, .revoked)
        #expect(script.order(2)?.writesFrom == 5_000_001)
    }

    @Test("A connection that waits for the local disk does not count as stalled")
    func ownDiskIsNoStall() {
        var script = Script.receiving(2)
        _ = script.take()
        for _ in 0..<100 {
            script.wait(.seconds(1))
            let waiting = [0, 1].map {
                LeaseObservation(lease: LeaseID($0), position: Int64($0) * 32 << 20, bytesReceived: 0, isWriting: true)
            }
            script.note(waiting)
        }
        #expect(!script.take().contains { $0.isRevoke })
    }

    @Test("A request whose head is late is revoked, however late the request was made")
    func lateHead() {
        var script = Script.fetching(2)
        script.progress(0, to: 1)
        _ = script.take()
        script.wait(.seconds(29))
        script.progress(0, to: 2)
        #expect(!script.take().contains(.revoke(LeaseID(1))))
        script.wait(.seconds(2))
        #expect(script.take().contains(.revoke(LeaseID(1))))
    }

    @Test("A 429 lowers the limit to the number served; one more is tried per probe delay")
    func refusalLowersCeiling() {
        var script = Script.fetching(8)
        for lease in 1..<3 { script.accept(lease, Script.resource) }
        for lease in 3..<8 {
            script.respond(lease, Script.refused)
            script.end(lease, .finished)
        }
        #expect(script.leases == [0, 1, 2])
        var trials: [Duration] = []
        var next = 8
        for step in 0..<300 {
            script.wait(.milliseconds(100))
            for lease in 0..<3 { script.progress(lease, to: (script.order(lease)?.writesFrom ?? 0) + Int64(step)) }
            if script.order(next) != nil {
                trials.append(script.now)
                script.respond(next, Script.refused)
                script.end(next, .finished)
                next += 1
            }
            #expect(script.leases.count == 3)
        }
        #expect(trials.count >= 2)
        for (left, right) in zip(trials, trials.dropFirst()) { #expect(right - left >= ConcurrencyBudget.probeDelay) }
    }

    @Test(
        "Server errors for one segment do not cause a burst of requests", arguments: [500, 502, 504, 408])
    func noStorm(status: Int) {
        var script = Script.receiving(2)
        script.end(1, .failed(DownloadError(.network, "reset", isTransient: true)))
        var requests = 0
        var lease = 2
        for step in 0..<600 {
            script.wait(.milliseconds(100))
            script.progress(0, to: Int64(step))
            guard script.order(lease) != nil else { continue }
            requests += 1
            script.respond(lease, .refused(status: status, retryAfter: nil))
            script.end(lease, .finished)
            lease += 1
        }
        #expect(requests <= 40, "\(requests) requests in a minute")
    }

    @Test(
        "What additional requests get ends no file while another connection brings it, and causes no burst",
        arguments: [
            .rejected(status: 403), .rejected(status: 410), .unauthorized(status: 401, challenge: nil),
            .malformed("noise"), .refused(status: 500, retryAfter: nil),
        ] as [RangeResponse])
    func additionalRequests(_ response: RangeResponse) {
        var script = Script.receiving(2)
        script.end(1, .failed(DownloadError(.network, "reset", isTransient: true)))
        var requests = 0
        for step in 0..<6000 {
            script.wait(.milliseconds(100))
            script.progress(0, to: Int64(step))
            for lease in script.leases.dropFirst() {
                requests += 1
                script.respond(lease, response)
                script.end(lease, .finished)
            }
        }
        #expect(script.conclusion == nil && (10...80).contains(requests), "\(requests) requests in ten minutes")
        // Requests that are made alone show that the file is not there any more.
        script.complete(0)
        for _ in 0..<1000 where script.conclusion == nil {
            script.wait(.seconds(1))
            for lease in script.leases {
                script.respond(lease, response)
                script.end(lease, .finished)
            }
            script.answerCheckpoints()
        }
        #expect(script.failure != nil)
    }

    @Test("Refusals while other requests are served do not count as failures of a segment")
    func crowdIsNoFailure() {
        var script = Script.receiving(2)
        script.end(1, .failed(DownloadError(.network, "reset", isTransient: true)))
        var lease = 2
        for step in 0..<12_000 where script.conclusion == nil {
            script.wait(.milliseconds(100))
            script.progress(0, to: Int64(step))
            guard script.order(lease) != nil else { continue }
            script.respond(lease, Script.refused)
            script.end(lease, .finished)
            lease += 1
        }
        #expect(lease > 12)
        script.complete(0)
        script.wait(.seconds(1))
        #expect(!script.leases.isEmpty)
        for next in script.leases { script.respond(next, .refused(status: 503, retryAfter: nil)) }
        #expect(
            script.conclusion == nil && script.plan != nil, "a refusal without other requests is the first that counts")
    }

    @Test("A connection that always breaks without a byte fails the download after the allowed attempts")
    func attemptsAreFinite() {
        var script = Script.fetching(1)
        var requests = 0
        var lease = 0
        for _ in 0..<5_000 where script.conclusion == nil {
            if script.order(lease) != nil {
                requests += 1
                script.end(lease, .failed(DownloadError(.network, "reset", isTransient: true)))
                lease += 1
            }
            for case .checkpoint in script.take() { script.tell(.checkpointed(bytes: 0)) }
            script.wait(.milliseconds(100))
        }
        #expect(script.failure?.code == .network)
        #expect(requests == 11)
    }

    /// The outcome when every response is the whole file without a stated length, and so many bytes long.
    private static func outcome(streamsOf length: Int64) -> Fetching.Outcome? {
        let done: Int64 = 1000
        var fetching = Fetching.sample(length: 1001, missing: [done..<1001], isSegmented: false)
        var now: Duration = .zero
        for _ in 0..<100 where fetching.outcome == nil {
            if let order = fetching.ask(at: now) {
                _ = fetching.responded(order.lease, .whole(.tagged("\"a\"", length: nil)), now: now)
                fetching.observe(
                    [LeaseObservation(lease: order.lease, position: done, bytesReceived: length, isWriting: false)],
                    now: now)
                _ = fetching.ended(order.lease, .finished, now: now)
            }
            now += .seconds(60)
        }
        return fetching.outcome
    }

    @Test("A file without a stated length that ends every time where the fetched bytes end has changed")
    func endsEarly() {
        #expect(
            Self.outcome(streamsOf: 1000) == .changed("it ends at byte 1000 every time and had 1001 bytes before"))
        guard case .failed(let failure) = Self.outcome(streamsOf: 0) else {
            Issue.record("a server that sends nothing has no other file")
            return
        }
        #expect(failure.code == .network)
    }

    @Test("Progress resets the failure count: a file completes although the server cuts every response")
    func progressResets() {
        var script = Script.fetching(1)
        for cut in 1...60 {
            script.progress(cut - 1, to: Int64(cut) << 20)
            script.end(cut - 1, .failed(DownloadError(.network, "reset", isTransient: true)))
            #expect(script.order(cut)?.writesFrom == Int64(cut) << 20)
            script.accept(cut, Script.resource)
        }
        script.complete(60)
        #expect(script.take().last?.isPlace == true)
    }

    @Test("A shorter 206 than requested is kept, and the rest is requested")
    func shortResponse() {
        var script = Script.receiving(2)
        script.end(1, .failed(DownloadError(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        let from: Int64 = 32 << 20
        script.respond(2, .partial(ByteRange(from..<(from + 100_000)), Script.resource))
        script.progress(2, to: from + 100_000)
        script.end(2, .finished)
        #expect(script.order(3)?.writesFrom == from + 100_000)
    }

    private static let long = RangeResponse.refused(
        status: 503, retryAfter: RetryAfter(fieldValue: "999999", date: nil, fallbackNow: nil))

    @Test("While others are served, a connection that is refused for days costs nothing but itself")
    func retryAfterTooLongForOne() {
        var script = Script.receiving(2)
        script.end(1, .failed(DownloadError(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        script.progress(0, to: 1000)
        script.respond(2, Self.long)
        script.end(2, .finished)
        for second in 1..<590 {
            script.wait(.seconds(1))
            script.progress(0, to: Int64(1000 + second))
        }
        #expect(script.order(3) == nil && script.conclusion == nil && script.leases == [0])
        script.complete(0)
        script.wait(.seconds(1))
        #expect(script.order(3) != nil, "the rest is requested by the connection that is free now")
    }

    @Test("A Retry-After longer than allowed fails the download after the fetched bytes are durable")
    func retryAfterTooLong() {
        var script = Script.receiving(1)
        script.progress(0, to: 1000)
        script.end(0, .failed(DownloadError(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        script.respond(1, Self.long)
        script.end(1, .finished)
        #expect(script.take().last == .checkpoint(isPause: true))
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.retryAfter == .seconds(999_999))
    }

    @Test("Segments whose bodies are empty every time end the download as a network failure, not as a change")
    func emptyBodies() {
        var fetching = Fetching.sample(length: 1001, missing: [1000..<1001], connections: 1)
        var now: Duration = .zero
        for _ in 0..<100 where fetching.outcome == nil {
            if let order = fetching.ask(at: now) {
                fetching.accept(order.lease, at: now)
                _ = fetching.ended(order.lease, .finished, now: now)
            }
            now += .seconds(60)
        }
        guard case .failed(let failure) = fetching.outcome else {
            Issue.record("\(String(describing: fetching.outcome))")
            return
        }
        #expect(failure.code == .network)
    }

    @Test("A refused connection lowers an automatic number to that of the connections that are open")
    func refusalLowersTarget() throws {
        var fetching = Fetching.sample(pieces: 3, connections: 3)
        fetching.traffic.controller.update(.automatic)
        let orders = try (0..<3).map { _ in try fetching.asked() }
        for order in orders.prefix(2) {
            fetching.accept(order.lease, at: .zero)
            fetching.bring(order.lease, to: order.writesFrom + 1000, at: .seconds(1))
        }
        #expect(fetching.target == 3)
        _ = fetching.responded(orders[2].lease, Script.refused, now: .seconds(1))
        #expect(fetching.target == 2)
    }

    @Test("A request for the whole file that is not answered with it fails the download")
    func streamRefused() throws {
        var fetching = Fetching.sample(isSegmented: false)
        let order = try fetching.asked()
        _ = fetching.responded(order.lease, .ignoresRanges("no Content-Range"), now: .zero)
        #expect(fetching.outcome == .failed(DownloadError(.protocol, "one: no Content-Range")))
    }

    @Test("A checkpoint is due once enough bytes are new")
    func checkpointLength() {
        for (bytes, isDue) in [
            (Checkpoints.length - 1, false), (Checkpoints.length, true),
        ] {
            var script = Script.fetching(1, length: 4 * Checkpoints.length)
            _ = script.take()
            script.progress(0, to: bytes)
            script.wait(.milliseconds(1))
            #expect(script.take().contains(.checkpoint(isPause: false)) == isDue)
        }
    }
}
