import Testing

@testable import SegmentedDownloadCore

@Suite("A URL that leads to another place again and again")
struct RelocationTests {
    private static let length: Int64 = 64 << 20
    private static let resource = RemoteResource.tagged("\"a\"", length: Self.length)

    /// A download on one connection that has written some bytes.
    private static func fetching(_ done: Int64, _ change: (inout DownloadSettings) -> Void = { _ in }) -> Script {
        var script = Script.fetching(.exactly(1), length: Self.length, change)
        script.progress(0, to: done)
        script.end(0, .failed(DownloadError(.network, "broken", isTransient: true)))
        return script
    }

    /// Answers requests from another place until the download surveys its part again, or concludes.
    private static func leadAway(_ script: inout Script) throws {
        for _ in 0..<Disagreement.attemptsForPlace {
            script.wait(.seconds(1))
            let order = try #require(script.orders.last)
            script.respond(order.lease.rawValue, .moved(nil))
            script.end(order.lease.rawValue, .stopped)
        }
        script.answerCheckpoints()
    }

    /// Resumes the part, and has the download write up to an offset.
    private static func resume(_ script: inout Script, from done: Int64, to end: Int64) throws {
        script.tell(
            .surveyed(
                .partial(
                    SavedPartial(
                        resource: Self.resource, completeLength: Self.length, missing: [done..<Self.length],
                        marked: []))))
        let probe = try #require(script.orders.last)
        script.accept(probe.lease.rawValue, Self.resource)
        script.tell(.prepared())
        script.progress(probe.lease.rawValue, to: end)
        script.end(probe.lease.rawValue, .failed(DownloadError(.network, "broken", isTransient: true)))
    }

    @Test("Without new bytes the bytes are compared a bounded number of times; then the file counts as changed")
    func bounded() throws {
        // The last bytes are lost each time, as when a comparison begins with the last segment, and not always fetched
        // again before the URL leads elsewhere.
        let (least, most): (Int64, Int64) = (1 << 20, 2 << 20)
        var script = Self.fetching(most)
        for number in 0..<DownloadChanges.relocationsMax {
            try Self.leadAway(&script)
            #expect(script.conclusion == nil)
            try Self.resume(&script, from: least, to: number.isMultiple(of: 2) ? least + 1 : most)
        }
        try Self.leadAway(&script)
        #expect(script.failure?.code == .changed)
        #expect(script.failure?.message.contains("again and again") == true)
    }

    @Test("With new bytes each time the download goes on")
    func progressing() throws {
        var script = Self.fetching(1 << 20)
        for number in 1...Int64(2 * DownloadChanges.relocationsMax) {
            try Self.leadAway(&script)
            #expect(script.conclusion == nil)
            try Self.resume(&script, from: number << 20, to: (number + 1) << 20)
        }
    }

    @Test("If bytes differ after the URL led elsewhere, the file has changed: the part is not set aside")
    func differs() throws {
        var script = Self.fetching(1 << 20)
        try Self.leadAway(&script)
        script.tell(
            .surveyed(
                .partial(
                    SavedPartial(
                        resource: Self.resource, completeLength: Self.length, missing: [(1 << 20)..<Self.length],
                        marked: []))))
        let probe = try #require(script.orders.last)
        script.respond(probe.lease.rawValue, .moved(nil))
        script.end(probe.lease.rawValue, .stopped)
        let comparison = try #require(script.orders.last)
        script.accept(comparison.lease.rawValue, Self.resource)
        script.tell(.prepared())
        script.end(comparison.lease.rawValue, .differs(at: comparison.request.lowerBound, byte: 1))
        script.answerCheckpoints()
        #expect(script.failure?.code == .changed)
    }
}
