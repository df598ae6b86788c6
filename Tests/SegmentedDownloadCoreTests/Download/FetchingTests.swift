import SegmentedDownloadCore
import Testing

@Suite("Fetching segments")
struct FetchingTests {
    private static let mebibyte: Int64 = 1 << 20
    private static let resource = RemoteResource.tagged("\"a\"", length: 64 << 20)
    private static let refused = RangeResponse.refused(status: 429, retryAfter: nil)

    private static func fetching(
        _ count: Int, length: Int64 = 64 << 20, _ change: (inout DownloadSettings) -> Void = { _ in }
    ) -> Script {
        Script.fetching(.exactly(count), length: length, change)
    }

    /// A download with this number of segments, each with its response accepted.
    private static func receiving(_ count: Int, _ change: (inout DownloadSettings) -> Void = { _ in }) -> Script {
        var script = Self.fetching(count, change)
        for lease in 1..<count { script.accept(lease, Self.resource) }
        return script
    }

    // MARK: Connections

    @Test("-s N opens exactly N connections, for N equal segments", arguments: [1, 2, 3, 4, 8, 16])
    func opensExactly(count: Int) {
        let script = Self.fetching(count)
        #expect(script.leases == Array(0..<count))
        #expect(script.plan?.segments.count == count)
    }

    @Test("A file too short for N pieces gets as many connections as it has pieces")
    func opensFewer() {
        #expect(Self.fetching(16, length: 3 << 20).leases == [0, 1, 2])
    }

    @Test("The probe continues as the first segment, up to the start of the second")
    func probeGoesOn() {
        var script = Self.fetching(4)
        #expect(script.take().last == .answer(LeaseID(0), .proceed(limit: 16 << 20)))
    }

    @Test(
        "An automatic download opens all allowed connections while each is as fast as the first"
    )
    func doublesWhilePaying() {
        var script = Script.fetching(.automatic, length: 1 << 30)
        let resource = RemoteResource.tagged("\"a\"", length: 1 << 30)
        var positions: [Int: Int64] = [:]
        var most = 0
        // 10 MB/s for each connection, and at most 40 MB/s in all.
        for _ in 0..<80 {
            for lease in script.leases where positions[lease] == nil {
                script.accept(lease, resource)
                positions[lease] = script.order(lease)?.writesFrom
            }
            script.wait(.milliseconds(100))
            let each = min(1_000_000, 4_000_000 / Int64(script.leases.count))
            for lease in script.leases {
                guard let position = positions[lease] else { continue }
                positions[lease] = position + each
                script.progress(lease, to: position + each)
            }
            most = max(most, script.leases.count)
        }
        #expect(most == 16, "four have four times the rate of one, and the group allows no more")
    }

    // MARK: Splitting

    @Test("A free connection takes the back half of the segment with most left")
    func splitsAtTheEnd() {
        var script = Self.receiving(2)
        script.wait(.seconds(1))
        script.progress(0, to: 8 << 20)
        script.progress(1, to: 64 << 20)
        script.end(1, .finished)
        #expect(script.leases == [0, 2])
        let order = script.order(2)
        #expect(order?.request.upperBound == 32 << 20)
        #expect(order?.writesFrom == 20 << 20, "the middle of what the first has left")
    }

    @Test("A victim that is already past the cut keeps the bytes it has written")
    func splitsBehindThePosition() {
        var script = Self.receiving(2)
        script.wait(.seconds(1))
        script.progress(0, to: 8 << 20)
        script.progress(1, to: 64 << 20)
        script.end(1, .finished)
        script.accept(2, Self.resource)
        script.progress(0, to: 20 << 20)
        script.end(0, .finished)
        for _ in 0..<20 {
            for lease in script.leases {
                script.accept(lease, Self.resource)
                script.complete(lease)
            }
        }
        #expect(script.take().contains { $0.isPlace })
    }

    @Test("A response continues into an unleased segment, which saves a request")
    func absorbs() {
        var script = Self.fetching(2)
        script.respond(1, Self.refused)
        script.end(1, .finished)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take() == [.answer(LeaseID(0), .proceed(limit: 64 << 20))])
    }

    @Test("A response that reaches a leased segment is stopped")
    func doesNotAbsorbWhatIsTaken() {
        var script = Self.receiving(2)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take().first == .answer(LeaseID(0), .stop))
    }

    // MARK: Faults

    @Test("A stalled lease is revoked, and another connection fetches the rest from the exact byte")
    func replacesStalled() {
        var script = Self.receiving(2)
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
        var script = Self.receiving(2)
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
        var script = Self.fetching(2)
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
        var script = Self.fetching(8)
        for lease in 1..<3 { script.accept(lease, Self.resource) }
        for lease in 3..<8 {
            script.respond(lease, Self.refused)
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
                script.respond(next, Self.refused)
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
        var script = Self.receiving(2)
        script.end(1, .failed(Failure(.network, "reset", isTransient: true)))
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

    @Test("Refusals while other requests are served do not count as failures of a segment")
    func crowdIsNoFailure() {
        var script = Self.receiving(2)
        script.end(1, .failed(Failure(.network, "reset", isTransient: true)))
        var lease = 2
        for step in 0..<12_000 where script.conclusion == nil {
            script.wait(.milliseconds(100))
            script.progress(0, to: Int64(step))
            guard script.order(lease) != nil else { continue }
            script.respond(lease, Self.refused)
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
        var script = Self.fetching(1)
        var requests = 0
        var lease = 0
        for _ in 0..<5_000 where script.conclusion == nil {
            if script.order(lease) != nil {
                requests += 1
                script.end(lease, .failed(Failure(.network, "reset", isTransient: true)))
                lease += 1
            }
            for case .checkpoint in script.take() { script.tell(.checkpointed(bytes: 0)) }
            script.wait(.milliseconds(100))
        }
        #expect(script.failure?.code == .network)
        #expect(requests == 11)
    }

    @Test("Progress resets the failure count: a file completes although the server cuts every response")
    func progressResets() {
        var script = Self.fetching(1)
        for cut in 1...30 {
            script.progress(cut - 1, to: Int64(cut) << 20)
            script.end(cut - 1, .failed(Failure(.network, "reset", isTransient: true)))
            #expect(script.order(cut)?.writesFrom == Int64(cut) << 20)
            script.accept(cut, Self.resource)
        }
        script.complete(30)
        #expect(script.take().last?.isPlace == true)
    }

    @Test("A shorter 206 than requested is kept, and the rest is requested")
    func shortResponse() {
        var script = Self.receiving(2)
        script.end(1, .failed(Failure(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        let from: Int64 = 32 << 20
        script.respond(2, .partial(ByteRange(from..<(from + 100_000)), Self.resource))
        script.progress(2, to: from + 100_000)
        script.end(2, .finished)
        #expect(script.order(3)?.writesFrom == from + 100_000)
    }

    @Test("A Retry-After longer than allowed fails the download after the fetched bytes are durable")
    func retryAfterTooLong() {
        var script = Self.receiving(2)
        script.end(1, .failed(Failure(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        script.respond(
            2, .refused(status: 503, retryAfter: RetryAfter(fieldValue: "999999", date: nil, fallbackNow: nil)))
        script.end(2, .finished)
        script.end(0, .revoked)
        #expect(script.take().last == .checkpoint(isPause: true))
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.retryAfter == .seconds(999_999))
    }

    // MARK: Changes, and servers without ranges

    @Test(
        "If every answer has another entity tag the file has changed, and none of their bytes are written"
    )
    func changed() {
        var script = Self.fetching(2)
        _ = script.take()
        script.respond(1, .changed("its ETag"))
        #expect(script.take() == [.answer(LeaseID(1), .stop)])
        script.end(1, .stopped)
        script.complete(0)
        _ = script.take()
        script.disagree("its ETag")
        script.answerCheckpoints()
        #expect(script.failure?.code == .changed)
    }

    @Test("If nodes have different entity tags, those with the recorded one are used, on fresh connections")
    func farm() throws {
        var script = Self.fetching(2)
        for count in 0..<100 {
            script.progress(0, to: Int64(count + 1) << 10)
            let order = try #require(script.orders.last)
            script.respond(order.lease.rawValue, .changed("its ETag"))
            script.end(order.lease.rawValue, .stopped)
            script.wait(.seconds(1))
            #expect(script.conclusion == nil)
        }
        let order = try #require(script.orders.last)
        #expect(order.request.closesConnection)
        script.accept(order.lease.rawValue, .tagged("\"a\"", length: 64 << 20))
        #expect(script.take().last == .answer(order.lease, .proceed(limit: order.limit)))
    }

    @Test("A file is not complete while the last answer had another entity tag: segdl sends one more request")
    func disagreementAtTheEnd() throws {
        var script = Self.fetching(2)
        script.respond(1, .changed("its ETag"))
        script.end(1, .stopped)
        script.progress(0, to: 32 << 20)
        script.wait(.seconds(1))
        let again = try #require(script.orders.last)
        script.accept(again.lease.rawValue, .tagged("\"a\"", length: 64 << 20))
        script.complete(0)
        script.respond(script.orders.last?.lease.rawValue ?? 0, .changed("its ETag"))
        script.complete(again.lease.rawValue)
        script.wait(.seconds(1))
        #expect(!script.take().contains { $0.isPlace })
    }

    @Test("A compared byte that differs means that the file changed")
    func differs() {
        var script = Self.receiving(2)
        script.progress(0, to: 1 << 20)
        script.end(1, .differs(at: 7, byte: 1))
        script.end(0, .revoked)
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.code == .changed)
    }

    @Test("A 200 to a range request is never written; after three, one stream fetches the rest")
    func wholeInsteadOfRange() {
        var script = Self.fetching(2)
        script.progress(0, to: 1 << 20)
        for lease in 1...3 {
            #expect(script.order(lease) != nil)
            _ = script.take()
            script.respond(lease, .whole(Self.resource))
            #expect(script.take() == [.answer(LeaseID(lease), .stop)])
            script.end(lease, .finished)
            script.wait(.seconds(1))
            script.progress(0, to: Int64(lease + 1) << 20)
        }
        #expect(script.leases == [0])
    }

    @Test("Bytes after the first gap are withdrawn before one stream fetches them again")
    func truncationReachesTheDisk() {
        var script = Self.receiving(3)
        let third = script.order(2)?.writesFrom ?? 0
        script.progress(2, to: third + 1_000_000)
        script.progress(0, to: 1 << 20)
        for lease in [0, 1, 2] { script.end(lease, .failed(Failure(.network, "reset", isTransient: true))) }
        _ = script.take()
        for _ in 0..<50 {
            script.wait(.seconds(1))
            for order in script.orders where order.request.isRanged {
                script.respond(order.lease.rawValue, .whole(Self.resource))
                script.end(order.lease.rawValue, .finished)
            }
            if script.orders.contains(where: { !$0.request.isRanged }) { break }
        }
        #expect(script.orders.map(\.request.isRanged) == [false])
        #expect(script.orders.first?.writesFrom == 1 << 20)
        #expect(script.orders.first?.forgetsFrom == 1 << 20)
    }

    @Test("A 206 to a request for the whole file does not end a stream of unknown length")
    func partOfUnknownLength() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.respond(0, .whole(RemoteResource(completeLength: nil)))
        script.tell(.prepared())
        script.progress(0, to: 50)
        script.end(0, .failed(Failure(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        script.respond(1, .partial(ByteRange(0..<100), RemoteResource(completeLength: 1000)))
        script.progress(1, to: 100)
        script.end(1, .finished)
        #expect(!script.take().contains { $0.isPlace }, "100 bytes of 1000 must not count as complete")
    }

    @Test("A stream of unknown length that is shorter the second time has changed")
    func shrinkingStream() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.respond(0, .whole(RemoteResource(completeLength: nil)))
        script.tell(.prepared())
        script.progress(0, to: 1000)
        script.end(0, .failed(Failure(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        script.respond(1, .whole(RemoteResource(completeLength: nil)))
        script.progress(1, to: 1000, received: 500)
        script.end(1, .finished)
        #expect(!script.take().contains { $0.isPlace })
    }

    @Test("A stream with a known end is not complete when an unframed body ends")
    func unframedStream() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.respond(0, .whole(RemoteResource(completeLength: nil)))
        script.tell(.prepared())
        script.progress(0, to: 1000)
        script.end(0, .failed(Failure(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        script.respond(1, .whole(RemoteResource(completeLength: nil, endsWithConnection: true)))
        let answer = script.take().compactMap { action in
            if case .answer(LeaseID(1), let decision) = action { decision } else { nil }
        }
        #expect(answer == [.stop])
    }

    @Test("A stream without a length that continues past the known end belongs to another file")
    func overrunningStream() {
        var script = Script(.exactly(1))
        script.tell(.surveyed(.nothing))
        script.respond(0, .whole(RemoteResource(completeLength: 1000)))
        script.tell(.prepared())
        script.progress(0, to: 500)
        script.end(0, .failed(Failure(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        script.respond(1, .whole(RemoteResource(completeLength: nil)))
        script.progress(1, to: 1000)
        script.tell(.limitReached(LeaseID(1)))
        script.end(1, .stopped)
        script.tell(.checkpointed(bytes: 1000))
        #expect(!script.take().contains { $0.isPlace })
        #expect(script.failure?.code == .changed)
    }

    @Test("A stream of unknown length is complete where it ends")
    func unknownLength() {
        var script = Script(.exactly(4))
        script.tell(.surveyed(.nothing))
        script.respond(0, .whole(RemoteResource(completeLength: nil)))
        script.tell(.prepared())
        #expect(script.leases == [0])
        script.progress(0, to: 1000)
        script.end(0, .finished)
        #expect(script.take().last?.isPlace == true)
    }

    @Test("An answer that ends before the missing byte is refused")
    func answerEndsTooEarly() {
        var script = Script()
        script.tell(.surveyed(.nothing))
        script.respond(0, .whole(RemoteResource(completeLength: 1000)))
        script.tell(.prepared())
        script.progress(0, to: 500)
        script.end(0, .failed(Failure(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        _ = script.take()
        script.respond(1, .partial(ByteRange(0..<100), RemoteResource(completeLength: 1000)))
        #expect(script.take().first == .answer(LeaseID(1), .stop))
    }

    // MARK: The end

    @Test("After the last byte is written, a connection that does not end does not delay the file")
    func lingeringConnection() {
        var script = Self.receiving(2)
        script.progress(0, to: 32 << 20)
        script.progress(1, to: 64 << 20)
        script.end(0, .finished)
        for _ in 0..<100 { script.wait(.seconds(1)) }
        let actions = script.take()
        #expect(!actions.contains { $0.isPlace })
        #expect(actions.contains(.revoke(LeaseID(1))))
        script.end(1, .revoked)
        // A checkpoint may be due meanwhile.
        if actions.contains(.checkpoint(isPause: false)) { script.tell(.checkpointed(bytes: 64 << 20)) }
        #expect(script.take().last?.isPlace == true)
    }

    @Test("The file is not placed during a checkpoint, because its failure would affect the file")
    func placeAwaitsCheckpoint() {
        var script = Self.fetching(1)
        script.progress(0, to: 1 << 20)
        script.wait(.seconds(6))
        #expect(script.take().contains(.checkpoint(isPause: false)))
        script.complete(0)
        #expect(!script.take().contains { $0.isPlace })
        script.tell(.checkpointed(bytes: 1 << 20))
        #expect(script.take() == [.place(length: 64 << 20)])
        script.tell(.placed)
        #expect(script.conclusion == .completed)
    }

    @Test("A part changed by another process is surveyed and completed again a few times; a wrong digest is not")
    func healing() {
        let changed = Failure(.integrity, "cut", isTransient: true)
        var script = Self.fetching(1)
        script.complete(0)
        for healing in 0..<DownloadStateMachine.healingsMax {
            #expect(script.take().last?.isPlace == true)
            script.tell(.storageFailed(changed))
            #expect(script.take().last == .survey)
            script.tell(.surveyed(.nothing))
            script.accept(healing + 1, .tagged("a", length: 64 << 20))
            script.tell(.prepared())
            script.complete(healing + 1)
        }
        #expect(script.take().last?.isPlace == true)
        script.tell(.storageFailed(changed))
        #expect(!script.take().contains(.survey))
        script.tell(.checkpointed(bytes: 0))
        #expect(script.conclusion == .failed(changed))

        var other = Self.fetching(1)
        other.complete(0)
        _ = other.take()
        other.tell(.storageFailed(Failure(.integrity, "another digest")))
        #expect(!other.take().contains(.survey))
    }

    @Test("A checkpoint is due every 5 s or 64 MiB, never two at once, and never without bytes")
    func checkpoints() {
        var script = Script.fetching(.exactly(1), length: 1 << 30)
        _ = script.take()
        script.wait(.seconds(6))
        #expect(!script.take().contains(.checkpoint(isPause: false)))
        script.progress(0, to: 1)
        script.wait(.seconds(1))
        #expect(script.take().contains(.checkpoint(isPause: false)))
        script.progress(0, to: 200 << 20)
        script.wait(.seconds(6))
        #expect(!script.take().contains(.checkpoint(isPause: false)))
        script.tell(.checkpointed(bytes: 1))
        script.wait(.milliseconds(100))
        #expect(script.take().contains(.checkpoint(isPause: false)))
    }

    @Test("A failed checkpoint stops all fetching, and nothing more is claimed")
    func checkpointFails() {
        var script = Self.fetching(1)
        script.progress(0, to: 1)
        script.wait(.seconds(6))
        _ = script.take()
        script.tell(.checkpointFailed(Failure(.file, "input/output error")))
        #expect(script.take() == [.revoke(LeaseID(0))])
        script.end(0, .revoked)
        #expect(script.failure?.code == .file)
    }

    @Test("A disk failure of one lease revokes all others and keeps the durable bytes")
    func diskFails() {
        var script = Self.receiving(2)
        _ = script.take()
        script.end(0, .storageFailed(Failure(.space, "no space")))
        #expect(script.take() == [.revoke(LeaseID(1))])
        script.end(1, .revoked)
        #expect(script.take() == [.checkpoint(isPause: true)])
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.code == .space)
    }

    @Test("A write that fails after the last byte was received fails the download")
    func diskFailsAtTheEnd() {
        var script = Self.receiving(2)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.complete(1)
        #expect(script.take() == [.revoke(LeaseID(0))])
        script.end(0, .storageFailed(Failure(.space, "no space")))
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.code == .space)
    }

    @Test("A run that takes longer than it may fails with what it has, and has all its time again when it goes on")
    func timeLimit() {
        var script = Self.fetching(1) { $0.timeLimit = .seconds(60) }
        func receive(_ lease: Int, _ script: inout Script) {
            script.wait(.milliseconds(1))
            for piece in 1...3 as ClosedRange<Int64> {
                #expect(script.conclusion == nil)
                script.progress(lease, to: piece << 20)
                if script.take().contains(.checkpoint(isPause: false)) { script.tell(.checkpointed(bytes: 0)) }
                script.wait(.seconds(20))
            }
            #expect(script.take() == [.revoke(LeaseID(lease))])
            script.end(lease, .revoked)
            #expect(script.take() == [.checkpoint(isPause: true)])
            script.tell(.checkpointed(bytes: 3 << 20))
            #expect(script.failure == Failure(.network, "not finished within 60.0 s, the time allowed"))
        }
        receive(0, &script)
        script.tell(.resume)
        script.wait(.seconds(600))
        script.tell(.surveyed(.nothing))
        script.accept(1, Self.resource)
        script.tell(.prepared())
        receive(1, &script)
    }

    @Test("The time limit does not fail a run that has all bytes, however long the disk takes")
    func timeLimitAtTheEnd() {
        var script = Self.fetching(1) { $0.timeLimit = .seconds(60) }
        script.wait(.milliseconds(1))
        script.progress(0, to: 1 << 20)
        script.wait(.seconds(20))
        #expect(script.take().contains(.checkpoint(isPause: false)))
        script.complete(0)
        script.wait(.seconds(600))
        script.tell(.checkpointed(bytes: 1 << 20))
        #expect(script.take().contains(.place(length: 64 << 20)))
    }
}
