import Testing

@testable import SegmentedDownloadCore

@Suite("Several sources of one file")
struct SourceTests {
    private static let length: Int64 = 64 << 20
    private static let reference = RemoteResource.tagged("\"a\"", length: length)

    /// Two connections, of which one fetches from the first of the sources; 1 MiB of it is there.
    private static func fetching(sources count: Int = 2) -> Script {
        var script = Script.fetching(.exactly(2), length: Self.length) { settings in
            settings.hosts = (0..<count).map { "host\($0)" }
        }
        script.progress(0, to: 1 << 20)
        script.wait(.milliseconds(100))
        return script
    }

    /// The request that is out for a sample, if one is.
    private static func sample(_ script: Script) -> FetchOrder? { script.orders.first { $0.isSample } }

    /// Answers samples as a source does that has the same bytes, under another tag, until none is asked for.
    private static func answerSamples(_ script: inout Script, agreeing: Bool = true) {
        let resource = RemoteResource.tagged("\"b\"", length: Self.length)
        for _ in 0..<8 {
            guard let order = Self.sample(script), let upperBound = order.request.upperBound else { return }
            script.accept(order.lease.rawValue, resource)
            script.progress(order.lease.rawValue, to: order.writesFrom, received: upperBound - order.request.lowerBound)
            script.end(order.lease.rawValue, agreeing ? .finished : .differs(at: order.request.lowerBound))
        }
    }

    @Test("A mirror is first asked for what is there already, and one connection waits for that")
    func samplesFirst() throws {
        let script = Self.fetching()
        let order = try #require(Self.sample(script))
        #expect(order.source == SourceID(1))
        #expect(order.writesFrom == order.request.upperBound)
        #expect(script.leases.count == 2)
    }

    @Test("An equal strong tag proves a mirror at once, and the next segment comes from it")
    func equalTag() throws {
        var script = Self.fetching()
        let order = try #require(Self.sample(script))
        script.accept(order.lease.rawValue, Self.reference)
        script.end(order.lease.rawValue, .finished)
        #expect(script.orders.last?.source == SourceID(1))
        #expect(script.orders.last?.isSample == false)
        #expect(script.orders.last?.mark == 0)
    }

    @Test("A mirror with another tag is sampled three times, and what it writes then is marked")
    func sampled() {
        var script = Self.fetching()
        Self.answerSamples(&script)
        #expect(script.orders.last?.source == SourceID(1))
        #expect(script.orders.last?.isSample == false)
        #expect(script.orders.last?.mark == 2)
    }

    @Test("A mirror with other bytes is asked no more, and the file comes from the first source")
    func differs() {
        var script = Self.fetching()
        Self.answerSamples(&script, agreeing: false)
        #expect(script.conclusion == nil)
        #expect(script.orders.allSatisfy { $0.source == .first && !$0.isSample })
        #expect(script.leases.count == 2)
    }

    @Test("A mirror of another length is asked no more")
    func otherLength() throws {
        var script = Self.fetching()
        let order = try #require(Self.sample(script))
        script.respond(order.lease.rawValue, .changed("its length was 1 bytes and is now 2 bytes"))
        script.end(order.lease.rawValue, .stopped)
        #expect(script.conclusion == nil)
        #expect(script.orders.allSatisfy { $0.source == .first && !$0.isSample })
    }

    @Test("Each source is asked in turn until one answers; the failure is told once")
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
}
