import SegmentedDownloadCore
import Testing

/// Answers that are not of the file, or not of the range that was requested.
@Suite("Changed files, and servers without ranges")
struct ChangedFileTests {
    @Test(
        "If every answer has another entity tag the file has changed, and none of their bytes are written"
    )
    func changed() {
        var script = Script.fetching(2)
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

    /// A download that must be of the version with an entity tag.
    private static func requiring(_ tag: String) -> Script {
        var script = Script { $0.requiredResource = .tagged(tag, length: 1 << 20) }
        script.tell(.surveyed(.nothing))
        return script
    }

    @Test("Bytes of another version than the required one are not written, not even the first ones")
    func required() throws {
        var script = Self.requiring("\"a\"")
        for _ in 0..<100 where script.conclusion == nil {
            let lease = try #require(script.orders.last?.lease.rawValue)
            script.accept(lease, .tagged("\"b\"", length: 1 << 20))
            #expect(!script.take().contains { $0.isPrepare })
            script.end(lease, .stopped)
            script.wait(.seconds(1))
        }
        #expect(script.failure?.code == .changed)
        #expect(script.failure?.remedy == .startTasksOver)
    }

    @Test("A node with the required version is found among others")
    func requiredOfFarm() throws {
        var script = Self.requiring("\"a\"")
        for tag in ["\"b\"", "\"b\""] {
            let lease = try #require(script.orders.last?.lease.rawValue)
            script.accept(lease, .tagged(tag, length: 1 << 20))
            script.end(lease, .stopped)
            script.wait(.seconds(1))
        }
        let lease = try #require(script.orders.last?.lease.rawValue)
        script.accept(lease, .tagged("\"a\"", length: 1 << 20))
        #expect(script.take().contains { $0.isPrepare })
    }

    @Test("If nodes have different entity tags, those with the recorded one are used, on fresh connections")
    func farm() throws {
        var script = Script.fetching(2)
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
        var script = Script.fetching(2)
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
        var script = Script.receiving(2)
        script.progress(0, to: 1 << 20)
        script.end(1, .differs(at: 7, byte: 1))
        script.end(0, .revoked)
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.code == .changed)
    }

    @Test("A 200 to a range request is never written; after three, one stream fetches the rest")
    func wholeInsteadOfRange() {
        var script = Script.fetching(2)
        script.progress(0, to: 1 << 20)
        for lease in 1...3 {
            #expect(script.order(lease) != nil)
            _ = script.take()
            script.respond(lease, .whole(Script.resource))
            #expect(script.take() == [.answer(LeaseID(lease), .stop)])
            script.end(lease, .finished)
            script.wait(.seconds(1))
            script.progress(0, to: Int64(lease + 1) << 20)
        }
        #expect(script.leases == [0])
    }

    @Test("Bytes after the first gap are withdrawn before one stream fetches them again")
    func truncationReachesTheDisk() {
        var script = Script.receiving(3)
        let third = script.order(2)?.writesFrom ?? 0
        script.progress(2, to: third + 1_000_000)
        script.progress(0, to: 1 << 20)
        for lease in [0, 1, 2] { script.end(lease, .failed(DownloadError(.network, "reset", isTransient: true))) }
        _ = script.take()
        for _ in 0..<50 {
            script.wait(.seconds(1))
            for order in script.orders where order.request.isRanged {
                script.respond(order.lease.rawValue, .whole(Script.resource))
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
        script.end(0, .failed(DownloadError(.network, "reset", isTransient: true)))
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
        script.end(0, .failed(DownloadError(.network, "reset", isTransient: true)))
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
        script.end(0, .failed(DownloadError(.network, "reset", isTransient: true)))
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
        script.end(0, .failed(DownloadError(.network, "reset", isTransient: true)))
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
        script.end(0, .failed(DownloadError(.network, "reset", isTransient: true)))
        script.wait(.seconds(1))
        _ = script.take()
        script.respond(1, .partial(ByteRange(0..<100), RemoteResource(completeLength: 1000)))
        #expect(script.take().first == .answer(LeaseID(1), .stop))
    }
}
