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

    /// As many segments as asked for, each one's answer accepted.
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

    @Test("The probe goes on as the first segment, up to where the second begins")
    func probeGoesOn() {
        var script = Self.fetching(4)
        #expect(script.take().last == .answer(LeaseID(0), .proceed(limit: 16 << 20)))
    }

    @Test(
        "An automatic download takes all the connections that it may have while each brings as much as the first"
    )
    func doublesWhilePaying() {
        var script = Script.fetching(.automatic, length: 1 << 30)
        let resource = RemoteResource.tagged("\"a\"", length: 1 << 30)
        var positions: [Int: Int64] = [:]
        var most = 0
        // 10 MB/s for each connection, though no more than 40 MB/s in all.
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
        #expect(most == 16, "four bring four times as much as one, and the group allows no more")
    }

    // MARK: Stealing

    @Test("A free connection with nothing waiting takes the back of what another has left")
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

    @Test("A victim that is already past the cut keeps what it has written")
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

    @Test("A response that runs on into what nobody has taken is let on, which saves a request")
    func absorbs() {
        var script = Self.fetching(2)
        script.respond(1, Self.refused)
        script.end(1, .finished)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take() == [.answer(LeaseID(0), .proceed(limit: 64 << 20))])
    }

    @Test("A response that runs on into what another fetches is stopped")
    func doesNotAbsorbWhatIsTaken() {
        var script = Self.receiving(2)
        _ = script.take()
        script.progress(0, to: 32 << 20)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take().first == .answer(LeaseID(0), .stop))
    }

    // MARK: Faults

    @Test("A stalled lease is revoked, and its remainder fetched by another from the exact byte")
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

    @Test("A connection that waits for our own disk does not stall")
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

    @Test("A head that does not come in time is given up, however late the request was made")
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

    @Test("A 429 lowers the ceiling to what is served; one trial a probe delay")
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
        "Errors of the server to one segment are not answered by a storm of requests", arguments: [500, 502, 504, 408])
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

    @Test("Refusals while others are served do not count against a segment")
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
        #expect(script.conclusion == nil && script.plan != nil, "one refusal, alone, is the first that counts")
    }

    @Test("A connection that always breaks without a byte fails the download after the attempts allowed")
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

    @Test("Progress resets the count: a server that cuts every response is still finished with")
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

    @Test("A shorter 206 than asked is kept, and the rest asked for")
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

    @Test("A Retry-After longer than allowed fails the download, with what it fetched made durable")
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
        "Where no answer has the recorded entity tag any more the file has changed, and nothing of the others is written"
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

    @Test("Of nodes that disagree those with the recorded entity tag are used, on fresh connections")
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

    @Test("A file is not complete while the last answer had another entity tag: it is asked once more")
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

    @Test("A compared byte that differs is a change")
    func differs() {
        var script = Self.receiving(2)
        script.progress(0, to: 1 << 20)
        script.end(1, .differs(at: 7))
        script.end(0, .revoked)
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.code == .changed)
    }

    @Test("The whole file instead of a range is never written; after three the rest comes as one stream")
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

    @Test("What is fetched behind the first gap is disclaimed before one stream fetches it again")
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

    @Test("A part that comes where the whole was asked for does not end a stream of unknown length")
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
        #expect(!script.take().contains { $0.isPlace }, "100 bytes of 1000 would be taken for the whole")
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

    @Test("A stream that said where it ends is not taken for complete where a connection ends that says nothing")
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

    @Test("A stream that says no length and goes on behind the end is of another file")
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

    @Test("An answer that ends before the byte wanted is refused, not counted on")
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

    @Test("All bytes written, a connection that never hands back its response does not hold up the file")
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
        // A checkpoint may have been asked for while we waited.
        if actions.contains(.checkpoint(isPause: false)) { script.tell(.checkpointed(bytes: 64 << 20)) }
        #expect(script.take().last?.isPlace == true)
    }

    @Test("The file is not placed while a checkpoint is under way, whose failure would concern it")
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

    @Test("A part that others have changed is looked at and completed again, a few times; a wrong digest is not")
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

    @Test("A failed checkpoint stops everything, and nothing more is claimed")
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

    @Test("A disk that fails a lease stops all others and keeps what is durable")
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

    @Test("A write that fails after the last byte was seen fails the download")
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

    @Test("A run that has all bytes is not over its time, however long the disk takes")
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
