import Testing

@testable import SegmentedDownloadCore

@Suite("Several sources of one file")
struct SourceTests {
    private static let length: Int64 = 64 << 20

    /// Some connections, all but one of which fetch from the first source; 1 MiB is written.
    private static func fetching(sources count: Int = 2, connections: Int = 2) -> Script {
        var script = Script.fetching(.exactly(connections), length: Self.length) { settings in
            settings.hosts = (0..<count).map { "host\($0)" }
        }
        script.progress(0, to: 1 << 20)
        script.wait(.milliseconds(100))
        return script
    }

    /// The sample request that is out, if any.
    private static func sample(_ script: Script) -> FetchOrder? { script.orders.first { $0.isSample } }

    /// Answers samples with equal or different bytes, until none is requested.
    ///
    /// - Returns: The number of samples.
    @discardableResult
    private static func answerSamples(
        _ script: inout Script, agreeing: Bool = true, tag: String = "\"b\""
    ) -> Int {
        let resource = RemoteResource.tagged(tag, length: Self.length)
        for count in 0..<8 {
            guard let order = Self.sample(script), let upperBound = order.request.upperBound else { return count }
            script.accept(order.lease.rawValue, resource)
            script.progress(order.lease.rawValue, to: order.writesFrom, received: upperBound - order.request.lowerBound)
            script.end(order.lease.rawValue, agreeing ? .finished : .differs(at: order.request.lowerBound, byte: 1))
        }
        return 8
    }

    @Test("The first request to a mirror is for bytes on disk, and one connection waits for it")
    func samplesFirst() throws {
        let script = Self.fetching()
        let order = try #require(Self.sample(script))
        #expect(order.source == SourceID(1))
        #expect(order.writesFrom == order.request.upperBound)
        #expect(script.leases.count == 2)
    }

    @Test(
        "A mirror is sampled three times regardless of its tag, and its claims are marked",
        arguments: ["\"a\"", "\"b\""])
    func sampled(tag: String) {
        var script = Self.fetching()
        // An equal tag is no proof: nginx derives it from the length and the second of the last change.
        let count = Self.answerSamples(&script, tag: tag)
        #expect(count == 3)
        #expect(script.orders.last?.source == SourceID(1))
        #expect(script.orders.last?.isSample == false)
        #expect(script.orders.last?.mark == 2)
    }

    @Test("If the only source left has no ranges to compare, one stream from it is compared and brings the rest")
    func lastWithoutRanges() throws {
        var fetching = Fetching.sample(length: Self.length, connections: 2, hosts: ["one", "two"])
        let first = try fetching.asked()
        fetching.accept(first.lease, at: .zero)
        fetching.bring(first.lease, to: 1 << 20, at: .zero)
        _ = fetching.ended(first.lease, .failed(DownloadError(.server, "gone")), now: .zero)
        var now = Duration.zero
        for _ in 0..<Fetching.Mode.rangeRefusalsMax {
            now += .seconds(10)
            let sample = try fetching.asked(at: now)
            #expect(sample.isSample && sample.source == SourceID(1) && sample.request.mayGetWhole)
            _ = fetching.responded(sample.lease, .whole(.tagged("\"b\"", length: Self.length)), now: now)
            _ = fetching.ended(sample.lease, .stopped, now: now)
        }
        let stream = try fetching.asked(at: now + .seconds(10))
        #expect(!stream.isSample && !stream.request.isRanged && stream.source == SourceID(1))
        #expect(stream.writesFrom == 1 << 20)
    }

    @Test("A mirror with other bytes under the same tag is no longer used")
    func lyingTag() {
        var script = Self.fetching()
        Self.answerSamples(&script, agreeing: false, tag: "\"a\"")
        #expect(script.conclusion == nil)
        #expect(script.orders.allSatisfy { $0.source == .first && !$0.isSample })
    }

    @Test("A mirror with other bytes is no longer used, and the file comes from the first source")
    func differs() {
        var script = Self.fetching()
        Self.answerSamples(&script, agreeing: false)
        #expect(script.conclusion == nil)
        #expect(script.orders.allSatisfy { $0.source == .first && !$0.isSample })
        #expect(script.leases.count == 2)
    }

    /// Answers a comparison: the source has equal bytes, or differs at the first.
    private static func answer(_ script: inout Script, _ order: FetchOrder, agreeing: Bool) {
        let count = (order.request.upperBound ?? Self.length) - order.request.lowerBound
        script.accept(order.lease.rawValue, RemoteResource.tagged("\"a\"", length: Self.length))
        script.progress(order.lease.rawValue, to: order.writesFrom, received: count)
        script.end(order.lease.rawValue, agreeing ? .finished : .differs(at: order.request.lowerBound, byte: 1))
    }

    @Test("While bytes are being withdrawn no source is compared with them")
    func condemned() throws {
        var script = Self.fetching(sources: 3, connections: 4)
        Self.answer(&script, try #require(Self.sample(script)), agreeing: false)
        // Two contradict each other, and the third decides.
        let arbitration = try #require(Self.sample(script))
        #expect(arbitration.source == SourceID(2))
        Self.answer(&script, arbitration, agreeing: false)
        for lease in script.leases {
            #expect(Self.sample(script) == nil)
            script.end(lease, .revoked)
        }
        #expect(script.orders.isEmpty && script.conclusion == nil)
        script.tell(.revised)
        #expect(script.orders.map(\.source) == [SourceID(1)])
        #expect(script.conclusion == nil)
    }

    @Test(
        "A comparison with bytes that are withdrawn later admits no source: one source starts over"
    )
    func staleAgreement() throws {
        var script = Self.fetching(sources: 3, connections: 4)
        // The third source does not answer yet; the second agrees once, and then differs.
        let first = try #require(script.orders.first { $0.isSample && $0.source == SourceID(1) })
        Self.answer(&script, first, agreeing: true)
        script.progress(0, to: 4 << 20)
        script.wait(.milliseconds(100))
        let second = try #require(script.orders.first { $0.isSample && $0.source == SourceID(1) })
        Self.answer(&script, second, agreeing: false)
        let arbitration = try #require(script.orders.first { $0.isSample && $0.spot?.count == 1 })
        #expect(arbitration.source == SourceID(2))
        Self.answer(&script, arbitration, agreeing: false)
        for lease in script.leases { script.end(lease, .revoked) }
        script.tell(.revised)
        for _ in 0..<3 {
            script.wait(.milliseconds(100))
            script.tell(.revised)
        }
        #expect(script.orders.map(\.source) == [SourceID(1)])
    }

    @Test("A byte that a source is currently writing is its own, so that source is not the arbiter for it")
    func writersByte() throws {
        var script = Self.fetching(sources: 3, connections: 3)
        // The second source is admitted first; the third does not answer meanwhile.
        while let order = script.orders.first(where: { $0.isSample && $0.source == SourceID(1) }) {
            Self.answer(&script, order, agreeing: true)
        }
        script.complete(0)
        let writer = try #require(script.orders.first { $0.source == SourceID(1) && !$0.isSample })
        script.accept(writer.lease.rawValue, RemoteResource.tagged("\"a\"", length: Self.length))
        script.progress(writer.lease.rawValue, to: writer.writesFrom + (1 << 20))
        // The first sample is the file's beginning, the next is the bytes farthest from it.
        Self.answer(&script, try #require(Self.sample(script)), agreeing: true)
        let order = try #require(Self.sample(script))
        #expect(order.source == SourceID(2) && order.request.lowerBound >= writer.writesFrom)
        Self.answer(&script, order, agreeing: false)
        #expect(Self.sample(script)?.source == .first)
    }

    @Test("The bytes of the last connection are compared too, although all bytes are written before it ends")
    func lastToEnd() throws {
        var script = Self.fetching()
        Self.answerSamples(&script)
        let mirrored = try #require(script.orders.first { $0.source == SourceID(1) })
        script.accept(mirrored.lease.rawValue, RemoteResource.tagged("\"b\"", length: Self.length))
        script.progress(
            mirrored.lease.rawValue, to: mirrored.limit, received: mirrored.limit - mirrored.request.lowerBound)
        script.complete(0)
        script.wait(.milliseconds(100))
        #expect(script.plan?.isComplete == true && script.conclusion == nil)
        for tag in ["\"a\"", "\"b\""] { try script.confirm(.tagged(tag, length: Self.length)) }
        #expect(Self.sample(script) == nil)
        script.end(mirrored.lease.rawValue, .finished)
        let audit = try #require(Self.sample(script))
        #expect(audit.source == .first && audit.request.upperBound == Self.length)
    }

    @Test("A mirror of another length is no longer used")
    func otherLength() throws {
        var script = Self.fetching()
        let order = try #require(Self.sample(script))
        script.respond(order.lease.rawValue, .changed("its length was 1 bytes and is now 2 bytes"))
        script.end(order.lease.rawValue, .stopped)
        #expect(script.conclusion == nil)
        #expect(script.orders.allSatisfy { $0.source == .first && !$0.isSample })
    }

    @Test("Each source is tried in turn until one answers; the failure is reported once")
    func failover() {
        var script = Script(.exactly(2)) { $0.hosts = ["a", "b", "c"] }
        script.tell(.surveyed(.nothing))
        script.respond(0, .rejected(status: 404))
        script.end(0, .stopped)
        script.respond(1, .rejected(status: 410))
        script.end(1, .stopped)
        #expect(script.orders.map(\.source) == [SourceID(2)])
        script.respond(2, .rejected(status: 403))
        #expect(script.failure?.status == 403)
        #expect(script.failure?.message.contains("2 other sources") == true)
    }

    @Test("A part continued from another source than the manifest's is marked from its first byte")
    func probeElsewhere() throws {
        let resource = RemoteResource.tagged("\"a\"", length: Self.length)
        let saved = SavedPartial(
            resource: resource, completeLength: Self.length, missing: [(1 << 20)..<Self.length], reference: SourceID(1))
        var script = Script(.exactly(2)) { $0.hosts = ["a", "b"] }
        script.tell(.surveyed(.partial(saved)))
        script.end(0, .failed(DownloadError(.network, "it broke", isTransient: true)))
        script.wait(.seconds(10))
        let probe = try #require(script.orders.first)
        #expect(probe.source == .first && probe.mark == 1)
    }

    @Test("Two streams that break during every comparison fail the download")
    func comparedForEver() {
        let resource = RemoteResource.tagged("\"a\"", length: Self.length)
        var script = Script(.exactly(1)) { $0.hosts = ["a", "b"] }
        script.tell(.surveyed(.nothing))
        script.respond(0, .whole(resource))
        script.tell(.prepared())
        script.progress(0, to: 1 << 20)
        script.end(0, .failed(DownloadError(.network, "it broke", isTransient: true)))
        var count = 0
        while let order = script.orders.first, count < 100 {
            count += 1
            script.respond(order.lease.rawValue, .whole(resource))
            script.progress(order.lease.rawValue, to: order.writesFrom, received: order.writesFrom)
            script.end(order.lease.rawValue, .failed(DownloadError(.network, "it broke", isTransient: true)))
            script.wait(.seconds(300))
        }
        #expect(count < 100)
        for _ in 0..<2 { script.tell(.checkpointed(bytes: 1 << 20)) }
        #expect(script.failure?.code == .network)
    }

    @Test("After the file changed, a source that differed from the old version is compared again")
    func reinstated() throws {
        var script = Script.fetching(.exactly(2), length: Self.length) { settings in
            settings.hosts = ["a", "b"]
            settings.onChange = .restart
        }
        script.progress(0, to: 1 << 20)
        script.wait(.milliseconds(100))
        Self.answerSamples(&script, agreeing: false)
        #expect(script.orders.allSatisfy { $0.source == .first })
        script.end(0, .failed(DownloadError(.network, "reset", isTransient: true)))
        script.disagree("its validator was another one")
        for lease in script.leases { script.end(lease, .revoked) }
        script.answerCheckpoints()
        let changed = RemoteResource.tagged("\"c\"", length: Self.length)
        let probe = try #require(script.orders.first)
        script.accept(probe.lease.rawValue, changed)
        script.tell(.prepared())
        script.progress(probe.lease.rawValue, to: 1 << 20)
        script.wait(.milliseconds(100))
        #expect(Self.sample(script)?.source == SourceID(1))
    }

    /// Has every connection bring all that it is asked for, until nothing is asked for any more.
    private static func bringAll(_ script: inout Script) {
        for _ in 0..<20 {
            for order in script.orders {
                let tag = order.source == .first ? "\"a\"" : "\"b\""
                if order.lease != LeaseID(0) { script.accept(order.lease.rawValue, .tagged(tag, length: Self.length)) }
                script.complete(order.lease.rawValue)
            }
            script.wait(.milliseconds(100))
        }
    }

    @Test("Where the digest does not match one source after the other is trusted with the whole file")
    func trustedAlone() throws {
        var script = Script.fetching(.exactly(2), length: Self.length) { settings in
            settings.hosts = ["host0", "host1"]
            settings.digests = [ExpectedDigest("crc32=00000000")!]
        }
        script.progress(0, to: 1 << 20)
        script.wait(.milliseconds(100))
        Self.answerSamples(&script)
        #expect(script.orders.contains { $0.source == SourceID(1) })
        Self.bringAll(&script)
        #expect(script.take().contains { $0.isPlace })
        for source in [SourceID.first, SourceID(1)] {
            script.tell(.storageFailed(DownloadError(.integrity, "another digest")))
            let revisions = script.take().compactMap { if case .revise(let revision) = $0 { revision } else { nil } }
            let revision = try #require(revisions.first)
            #expect(revision.reference == source && !revision.withdrawn.isEmpty && script.plan != nil)
            script.tell(.revised)
            #expect(!script.orders.isEmpty && script.orders.allSatisfy { $0.source == source })
            Self.bringAll(&script)
            #expect(script.take().contains { $0.isPlace })
        }
        script.tell(.storageFailed(DownloadError(.integrity, "another digest")))
        script.answerCheckpoints()
        #expect(script.failure?.code == .integrity)
    }

    @Test("If no source is usable, a mirror is compared even with a few bytes")
    func fewBytes() throws {
        for trust in [SourceTable.Trust.proven, .failed] {
            var fetching = Fetching.sample(connections: 2, hosts: ["one", "two"])
            let order = try fetching.asked()
            fetching.accept(order.lease, at: .zero)
            fetching.bring(order.lease, to: 1000, at: .seconds(1))
            _ = fetching.ended(
                order.lease, .failed(DownloadError(.network, "reset", isTransient: true)), now: .seconds(1))
            fetching.sources[.first].trust = trust
            let next = try fetching.asked(at: .seconds(2))
            #expect(next.isSample == (trust == .failed) && (!next.isSample || next.spot == 0..<1000))
        }
    }

    @Test("A new reference is compared with anew, and failures from before it do not count")
    func redefined() {
        var table = SourceTable(hosts: ["one", "two"])
        let (resource, two) = (RemoteResource.tagged("\"a\"", length: Self.length), SourceID(1))
        table.define(resource, by: .first, .init())
        table[two].trust = .sampled
        table[two].samples = [1]
        table[two].failures = 3
        table.contribute(0..<10, by: two)
        table.define(resource, by: .first, .init())
        #expect(table[two].trust == .unproven && table[two].failures == 0)
        #expect(table[two].samples.isEmpty && table[two].contributed.isEmpty && table[.first].trust == .proven)
    }
}
