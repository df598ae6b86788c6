import Testing

@testable import SegmentedDownloadCore

/// Fetching in the order of a reader.
@Suite struct ReadingWindowTests {
    private static let length: Int64 = 256 << 20
    private static let windowLength: Int64 = 12 << 20
    private static let resource = RemoteResource.tagged("\"a\"", length: length)

    private static func reading(_ segments: Int, isStream: Bool = true) -> Script {
        var script = Script(.exactly(segments))
        script.tell(.surveyed(.nothing))
        script.accept(0, Self.resource)
        script.tell(
            .prepared(ReadingWindow(id: 7, length: Self.windowLength, position: 0, isStream: isStream)))
        return script
    }

    /// Has all connections but the first receive as much as the window allows.
    private static func fill(_ script: inout Script) {
        for _ in 0..<40 {
            for lease in script.leases.filter({ $0 > 0 }) {
                script.accept(lease, Self.resource)
                script.complete(lease)
            }
        }
    }

    @Test("Nothing past the window is requested, and every whole piece before its end is")
    func isBounded() throws {
        var script = Self.reading(4)
        // Two thirds of each connection's share of the window.
        let piece = Self.windowLength / 6
        #expect(script.orders.count == 4)
        #expect(script.orders.dropFirst().map(\.request.lowerBound) == [piece, 2 * piece, 3 * piece])
        #expect(script.orders.dropFirst().map(\.request.upperBound) == [2 * piece, 3 * piece, 4 * piece])
        // Completed pieces make room for the next ones, up to the window's end.
        Self.fill(&script)
        #expect(script.plan?.segments.filter { !$0.isComplete && $0.lease != nil }.map(\.lowerBound) == [0])
        let reached = try #require(script.plan?.segments.last { $0.isComplete }?.upperBound)
        #expect(reached == Self.windowLength)
    }

    @Test("Bytes that the reader consumed move the window; those of another reading do not")
    func moves() throws {
        var script = Self.reading(4)
        Self.fill(&script)
        script.progress(0, to: Self.windowLength / 6)
        script.end(0, .finished)
        #expect(script.orders.isEmpty)
        script.tell(.taken(upTo: 64 << 20, window: 8))
        #expect(script.orders.isEmpty)
        script.tell(.taken(upTo: Self.windowLength, window: 7))
        #expect(script.orders.map(\.request.lowerBound).min() == Self.windowLength)
        #expect(script.orders.count == 4)
    }

    @Test("The plan does not grow with the number of fetched pieces")
    func staysSmall() throws {
        var script = Self.reading(4)
        var most = 0
        while script.conclusion == nil, script.plan?.isComplete == false {
            let leases = script.leases
            try #require(!leases.isEmpty, "nothing is requested at \(script.plan?.frontier ?? -1)")
            for lease in leases {
                if lease > 0 { script.accept(lease, Self.resource) }
                script.complete(lease)
            }
            most = max(most, script.plan?.segments.count ?? 0)
            script.tell(.taken(upTo: script.plan?.frontier ?? 0, window: 7))
        }
        #expect(script.take().contains { $0.isPlace })
        #expect(most < 12)
    }

    @Test("One response continues piece by piece while the window has room, and is stopped when it has none")
    func followsOneResponse() throws {
        var script = Self.reading(1)
        let piece = Self.windowLength / 3 * 2
        script.progress(0, to: piece)
        script.tell(.taken(upTo: piece / 2, window: 7))
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take().contains(.answer(LeaseID(0), .proceed(limit: 2 * piece))))
        script.progress(0, to: 2 * piece)
        script.tell(.limitReached(LeaseID(0)))
        #expect(script.take().contains(.answer(LeaseID(0), .stop)))
        script.end(0, .stopped)
        #expect(script.orders.isEmpty)
        script.tell(.taken(upTo: piece / 2 * 3, window: 7))
        #expect(script.orders.map(\.request.lowerBound) == [2 * piece])
    }

    @Test("Connections without room in the window help with the piece that the reader waits for")
    func helpsTheFirst() throws {
        var script = Self.reading(4)
        Self.fill(&script)
        // The first connection is slow, and nearly all of its piece is missing.
        for second in 1...4 {
            script.wait(.seconds(1))
            script.progress(0, to: Int64(second) << 10)
        }
        script.wait(.milliseconds(200))
        #expect(script.orders.contains { $0.lease > LeaseID(0) && $0.request.lowerBound < Self.windowLength / 6 })
    }

    @Test("When bytes are passed on only one source is used")
    func oneSource() throws {
        for isStream in [true, false] {
            var script = Script(.exactly(4)) { $0.hosts = ["one", "two"] }
            script.tell(.surveyed(.nothing))
            script.accept(0, Self.resource)
            script.tell(
                .prepared(ReadingWindow(id: 7, length: Self.windowLength, position: 0, isStream: isStream)))
            script.progress(0, to: 1 << 20)
            script.wait(.milliseconds(100))
            script.complete(1)
            #expect(script.orders.contains { $0.source != .first } != isStream)
        }
    }
}
