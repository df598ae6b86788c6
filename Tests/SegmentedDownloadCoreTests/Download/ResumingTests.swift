import SegmentedDownloadCore
import Testing

/// What a download requests first if there is a part of an earlier run.
@Suite("The first request of a resumed download")
struct ResumingTests {
    private static let length: Int64 = 10 << 20
    private static let strong = RemoteResource.tagged("\"a\"", length: length)
    private static let unproven = RemoteResource(completeLength: length)

    private static func resuming(
        _ resource: RemoteResource = strong, missing: [Range<Int64>] = [3_000_000..<length],
        _ change: (inout DownloadSettings) -> Void = { _ in }
    ) -> Script {
        var script = Script(.exactly(4), change)
        script.tell(
            .surveyed(.partial(SavedPartial(resource: resource, completeLength: Self.length, missing: missing))))
        return script
    }

    @Test("A resumed download requests its first gap, on condition that the resource is the same")
    func resumeRequest() {
        let script = Self.resuming()
        let request = script.order(0)?.request
        #expect(request?.rangeFieldValue == "bytes=3000000-")
        #expect(request?.ifRangeFieldValue == "\"a\"")
        #expect(Self.resuming(missing: [5..<10, 20..<Self.length]).order(0)?.request.rangeFieldValue == "bytes=5-9")
    }

    @Test("A part whose date proves nothing is compared, and still proves nothing when it is resumed")
    func weakDate() {
        let date = HTTPDate(secondsSinceEpoch: 1_700_000_000)
        let strong = RemoteResource(
            completeLength: Self.length, validator: Validator(entityTag: nil, lastModified: date))
        let weak = RemoteResource(
            completeLength: Self.length, validator: Validator(entityTag: nil, lastModified: date, isDateWeak: true))
        let request = Self.resuming(weak).order(0)?.request
        #expect(request?.lowerBound == Self.resuming(Self.unproven).order(0)?.request.lowerBound)
        for (recorded, current, expected) in [
            (weak, strong, weak), (weak, weak, weak), (strong, weak, strong), (strong, strong, strong),
        ] {
            var script = Self.resuming(recorded)
            script.accept(0, current)
            #expect(script.takePreparation()?.resource == expected)
        }
    }

    @Test("Without a validator a resumed download compares 16 KiB before the gap")
    func resumeOverlaps() {
        let order = Self.resuming(Self.unproven).order(0)
        #expect(order?.request.lowerBound == 3_000_000 - Int64(16 << 10))
        #expect(order?.writesFrom == 3_000_000)
    }

    @Test("An overlap that would reach before the first byte begins with it")
    func resumeOverlapsAtStart() {
        let order = Self.resuming(Self.unproven, missing: [100..<Self.length]).order(0)
        #expect(order?.request.lowerBound == 0)
    }

    @Test("If only bytes can prove the resource, no source writes before a comparison succeeded")
    func nobodyWritesUnproven() {
        var script = Self.resuming(Self.unproven)
        script.accept(0, Self.unproven)
        script.tell(.prepared())
        script.wait(.seconds(1))
        #expect(script.leases.count > 1)
        #expect(script.orders.dropFirst().allSatisfy { $0.isSample })
        script.progress(0, to: 3_000_100)
        while let sample = script.orders.first(where: { $0.isSample }) {
            script.agree(sample.lease.rawValue, Self.unproven)
        }
        script.wait(.milliseconds(100))
        #expect(script.leases.count == 4)
        #expect(script.orders.allSatisfy { !$0.isSample })
    }

    @Test(
        "Without a validator and without byte 0, later bytes are compared before anything is written")
    func comparesBehindGap() {
        var script = Self.resuming(Self.unproven, missing: [0..<4_000_000])
        script.accept(0, Self.unproven)
        script.end(0, .stopped)
        #expect(script.takePreparation()?.mode == .adopted)
        script.tell(.prepared())
        #expect(!script.orders.isEmpty)
        while let sample = script.orders.first(where: { $0.isSample }) {
            #expect(script.orders.allSatisfy { $0.isSample })
            script.agree(sample.lease.rawValue, Self.unproven)
        }
        script.wait(.milliseconds(100))
        #expect(script.orders.first?.writesFrom == 0)
        #expect(Self.resuming(missing: [0..<4_000_000]).order(0)?.request.ifRangeFieldValue == "\"a\"")
    }

    /// A part whose only gap has been filled, and whose comparisons are not answered yet.
    private static var comparing: Script {
        var script = Self.resuming(Self.unproven, missing: [3_000_000..<3_100_000])
        script.accept(0, Self.unproven)
        script.tell(.prepared())
        script.wait(.milliseconds(100))
        script.progress(0, to: 3_100_000)
        script.end(0, .finished)
        return script
    }

    @Test(
        "If a server stops serving ranges before all comparisons, one stream is compared with the whole part",
        arguments: [1, 2])
    func losesRangesWhileComparing(atOnce: Int) {
        var script = Self.comparing
        var refusals = 0
        while script.orders.contains(where: \.isSample) {
            let answered = script.orders.filter(\.isSample).prefix(atOnce).map(\.lease.rawValue)
            for lease in answered { script.respond(lease, .whole(Self.unproven)) }
            for lease in answered { script.end(lease, .stopped) }
            refusals += answered.count
            for lease in script.take().compactMap(\.revoked) { script.end(lease.rawValue, .revoked) }
            script.wait(.seconds(1))
        }
        #expect(script.conclusion == nil && refusals == (atOnce == 1 ? 3 : 4))
        // The stream delivers the block of the last compared byte again, so it is compared with all blocks before.
        let block = Self.length - BlockLayout.blockLength
        #expect(script.orders.map(\.request.isRanged) == [false])
        #expect(script.orders.first?.writesFrom == block && script.orders.first?.forgetsFrom == block)
    }

    @Test("An answer to a comparison that is not a range does not end the comparisons if the next ones are")
    func refusesOneComparison() {
        var script = Self.comparing
        for number in 0... {
            guard let sample = script.orders.first(where: \.isSample)?.lease.rawValue else { break }
            if number % 3 < 2 {
                script.respond(sample, .whole(Self.unproven))
                script.end(sample, .stopped)
                script.wait(.seconds(1))
            } else {
                script.agree(sample, Self.unproven)
            }
        }
        script.answerCheckpoints()
        #expect(script.orders.isEmpty && script.take().contains(where: \.isPlace))
    }

    @Test("A 206 continues the part as surveyed")
    func resumes() {
        var script = Self.resuming()
        _ = script.take()
        script.accept(0, Self.strong)
        #expect(script.takePreparation()?.mode == .adopted)
        script.tell(.prepared())
        #expect(script.leases == [0, 1, 2, 3])
        #expect(script.plan?.bytesDone == 3_000_000)
    }

    @Test("After a 200 whose tag equals the If-Range, the request is repeated without If-Range")
    func dislikesIfRange() {
        var script = Self.resuming()
        script.respond(0, .whole(Self.strong))
        script.end(0, .stopped)
        let request = script.order(1)?.request
        #expect(request?.ifRangeFieldValue == nil)
        #expect(request?.rangeFieldValue == "bytes=3000000-")
        script.accept(1, Self.strong)
        #expect(script.takePreparation()?.mode == .adopted)
    }

    @Test("A 200 to a resumed range is read as one stream, and compared with the bytes on disk")
    func wholeOnResume() {
        var script = Self.resuming(Self.unproven, missing: [3_000_000..<4_000_000, 5_000_000..<Self.length])
        script.respond(0, .whole(Self.unproven))
        #expect(script.takePreparation()?.mode == .adoptedUp(to: 3_000_000))
        script.tell(.prepared())
        #expect(script.leases == [0])
        #expect(script.order(0)?.writesFrom == 3_000_000)
        #expect(script.plan?.missing == [3_000_000..<Self.length])
    }

    @Test("A part of another resource without bytes starts over, so that the manifest names the new one")
    func nothingKept() {
        var saved = Self.strong
        saved.locator = .unrecorded
        var script = Self.resuming(saved, missing: [0..<Self.length])
        var current = Self.strong
        current.locator = .named(ResourceName(requested: "http://host/a", target: "http://host/b"))
        script.accept(0, current)
        #expect(script.takePreparation()?.mode == .fresh)
        script.tell(.prepared())
        #expect(script.leases.contains(0))
    }

    @Test("If nothing can be kept, a stream of unknown length is not assumed to be as long as the part")
    func wholeOfUnknownLength() {
        var script = Self.resuming(Self.unproven, missing: [0..<3_000_000])
        let stream = RemoteResource(completeLength: nil, endsWithConnection: true)
        for lease in 0..<2 where script.order(lease)?.request.isRanged == true {
            script.respond(lease, .ignoresRanges("no Content-Range"))
            script.end(lease, .stopped)
        }
        let lease = script.orders.last?.lease.rawValue ?? 0
        script.respond(lease, .whole(stream))
        #expect(script.takePreparation()?.mode == .fresh)
        script.tell(.prepared())
        script.progress(lease, to: 2_999_998)
        script.end(lease, .finished)
        #expect(script.plan == nil, "the stream determines the end")
        #expect(script.conclusion == nil)
    }

    @Test("An answer that ends before the gap begins is not used")
    func overlapOnly() {
        var script = Self.resuming(Self.unproven)
        let lowerBound = script.order(0)?.request.lowerBound ?? 0
        script.respond(0, .partial(ByteRange(lowerBound..<(lowerBound + 100)), Self.unproven))
        #expect(script.takePreparation() == nil)
    }

    @Test("A changed resource fails the download, and the part is kept")
    func changed() {
        var script = Self.resuming()
        script.disagree("its ETag")
        #expect(script.failure?.code == .changed)
        #expect(!script.take().contains(.discard))
    }

    @Test("A restart after a change keeps the part until the new answer is accepted")
    func restarts() {
        var script = Self.resuming { $0.onChange = .restart }
        _ = script.take()
        script.disagree("its ETag")
        #expect(!script.take().contains { $0.isPrepare })
        let lease = script.leases.last ?? 0
        #expect(script.order(lease)?.request.rangeFieldValue == "bytes=0-")
        script.accept(lease, .tagged("\"b\"", length: 100))
        #expect(script.takePreparation()?.mode == .fresh)
    }

    @Test("Bytes fetched after a restart survive a pause")
    func restartThenPause() {
        var script = Self.resuming { $0.onChange = .restart }
        script.respond(0, .changed("its ETag"))
        script.end(0, .finished)
        let resource = RemoteResource.tagged("\"b\"", length: Self.length)
        script.accept(1, resource)
        script.tell(.prepared())
        script.tell(.pause)
        for lease in script.leases { script.end(lease, .revoked) }
        script.tell(.checkpointed(bytes: 100))
        #expect(script.conclusion == .paused)
        script.tell(.resume)
        script.tell(
            .surveyed(.partial(SavedPartial(resource: resource, completeLength: Self.length, missing: [100..<200]))))
        #expect(script.orders.last?.request.lowerBound == 100)
    }

    @Test("A resource that keeps changing fails the download after three restarts")
    func restartsAreFinite() {
        var script = Self.resuming { $0.onChange = .restart }
        var rounds = 0
        while script.conclusion == nil, rounds < 20 {
            rounds += 1
            script.disagree("its ETag")
            script.answerCheckpoints()
            guard script.conclusion == nil, let lease = script.leases.last else { break }
            script.accept(lease, .tagged("\"b\"", length: Self.length))
            script.tell(.prepared())
            script.progress(lease, to: 100)
            script.end(lease, .failed(DownloadError(.network, "reset", isTransient: true)))
            script.wait(.seconds(1))
        }
        #expect(script.failure?.code == .changed)
        #expect(rounds <= 4)
    }

    @Test("A 416 with another length means that the file changed; with the same length it is a protocol error")
    func unsatisfiable() {
        var script = Self.resuming()
        script.answerComparisons { $0.respond($1, .unsatisfiable(completeLength: 5)) }
        #expect(script.failure?.code == .changed)
        script = Self.resuming()
        script.respond(0, .unsatisfiable(completeLength: Self.length))
        #expect(script.failure?.code == .protocol)
    }

    @Test("A part without gaps is placed once the origin confirms it, without fetching a byte")
    func nothingMissing() {
        var script = Self.resuming(missing: [])
        #expect(script.orders.last?.request.ifNoneMatchFieldValue != nil)
        script.respond(0, .notModified())
        #expect(script.takePreparation()?.mode == .adopted)
        script.tell(.prepared())
        #expect(script.take().last?.isPlace == true)
    }

    @Test("A part without gaps but of another version is not placed")
    func completeButOld() {
        var script = Self.resuming(missing: [])
        script.disagree("its validator was another")
        #expect(script.failure?.code == .changed)
    }

    @Test("--continue must fails if there is nothing to resume, --continue no starts over")
    func continuation() {
        var script = Script { $0.continuation = .must }
        script.tell(.surveyed(.nothing))
        #expect(script.failure?.code == .state)
        script = Self.resuming { $0.continuation = .no }
        #expect(script.order(0)?.request.rangeFieldValue == "bytes=0-")
        script.accept(0, Self.strong)
        #expect(script.takePreparation()?.mode == .fresh)
    }

    @Test("A part that once did not match its digest is not resumed without a digest")
    func rejected() {
        for (continuation, code) in [(.auto, nil), (.must, .integrity)]
            as [(DownloadOptions.Continuation, DownloadError.Code?)]
        {
            var script = Script(.exactly(4)) { $0.continuation = continuation }
            var saved = SavedPartial(resource: Self.strong, completeLength: Self.length, missing: [5..<Self.length])
            saved.isRejected = true
            script.tell(.surveyed(.partial(saved)))
            #expect(script.failure?.code == code)
            #expect(script.order(0)?.request.rangeFieldValue == (code == nil ? "bytes=0-" : nil))
        }
    }

    @Test("A part of another file is set aside, but if a digest identifies the file it has changed")
    func pinned() throws {
        for isPinned in [false, true] {
            var script = Script(.exactly(1))
            var saved = SavedPartial(
                resource: Self.strong, completeLength: Self.length, missing: [3_000_000..<Self.length])
            saved.isPinned = isPinned
            script.tell(.surveyed(.partial(saved)))
            script.respond(0, .moved(nil))
            script.end(0, .stopped)
            let comparison = try #require(script.orders.last)
            script.accept(comparison.lease.rawValue, Self.strong)
            script.tell(.prepared())
            script.end(comparison.lease.rawValue, .differs(at: comparison.request.lowerBound, byte: 1))
            script.answerCheckpoints()
            #expect(script.failure?.code == (isPinned ? .changed : nil))
            #expect(script.orders.last?.request.rangeFieldValue == (isPinned ? nil : "bytes=0-"))
        }
    }

    @Test("The bytes kept of a part are those that are not missing")
    func bytesKept() {
        let saved = SavedPartial(resource: Self.strong, completeLength: 100, missing: [10..<20, 50..<100])
        #expect(saved.bytesKept == 40)
    }
}
