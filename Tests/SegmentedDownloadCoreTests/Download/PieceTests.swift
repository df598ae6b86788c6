import Testing

@testable import SegmentedDownloadCore

/// How a file is cut into pieces if a reader takes them in order.
@Suite("Pieces in the order of reading")
struct PieceTests {
    private static func reading(
        _ length: Int64, window windowLength: Int64, connections: Int = 1, isStream: Bool = true, overlap: Int64 = 0,
        done: Int64 = 0
    ) -> Fetching {
        Fetching.sample(
            length: length, missing: [done..<length], connections: connections,
            written: .init(ranges: done > 0 ? [0..<done] : []), overlap: overlap,
            window: ReadingWindow(id: 1, length: windowLength, position: 0, isStream: isStream))
    }

    @Test(
        "A piece is two thirds of a connection's share, and never shorter than two thirds of the least that is worth it"
    )
    func pieceLength() {
        let mebibyte: Int64 = 1 << 20
        #expect(Self.reading(64 * mebibyte, window: 12 * mebibyte).room.piece == 8 * mebibyte)
        #expect(Self.reading(64 * mebibyte, window: 12 * mebibyte, connections: 4).room.piece == 2 * mebibyte)
        #expect(Self.reading(64 * mebibyte, window: 12 * mebibyte, connections: 32).room.piece == mebibyte)
        // Where the window is shorter than a piece worth its request, all of its two thirds are one.
        #expect(Self.reading(64 * mebibyte, window: 9000, connections: 32).room.piece == 6000)
        #expect(Self.reading(64 * mebibyte, window: 1).room.piece == 1)
        #expect(Self.reading(64 * mebibyte, window: 5).room.piece == 3)
    }

    @Test("Room ends with the window, and where bytes are kept on disk with half as many pieces again")
    func roomEnd() {
        let mebibyte: Int64 = 1 << 20
        let stream = Self.reading(64 * mebibyte, window: 12 * mebibyte, connections: 32)
        #expect(stream.room.end == 12 * mebibyte)
        let file = Self.reading(64 * mebibyte, window: 12 * mebibyte, connections: 32, isStream: false)
        #expect(file.room.end == 48 * mebibyte)
    }

    @Test("Without a reader, in one stream, and until the file is proved the same, there is room everywhere")
    func everywhere() {
        let window = Self.reading(1 << 20, window: 1 << 16)
        #expect(window.room.end == 1 << 16)
        #expect(Fetching.sample().room.end == .max && Fetching.sample().room.piece == .max)
        var stream = window
        stream.mode = .stream
        #expect(stream.room.end == .max)
        let unproved = Self.reading(1 << 20, window: 1 << 16, overlap: 1 << 14, done: 1 << 15)
        #expect(unproved.awaitsProof && unproved.room.end == .max)
    }

    @Test("A segment as long as a piece is not cut, and a longer one is at a place where a block begins")
    func cut() throws {
        // No multiple of anything, for a cut to show.
        let window: Int64 = 12 << 20 + 9
        let piece = Self.reading(64 << 20, window: window).room.piece
        var whole = Self.reading(piece, window: window)
        whole.cutPiece(try #require(whole.plan.segments.first).id)
        #expect(whole.plan.segments.count == 1)
        var longer = Self.reading(piece + 1, window: window)
        longer.cutPiece(try #require(longer.plan.segments.first).id)
        let end = piece / SegmentPlanner.alignment * SegmentPlanner.alignment
        #expect(longer.plan.segments.map(\.lowerBound) == [0, end])
        // A piece shorter than a block ends where it ends.
        var short = Self.reading(1 << 20, window: 9000)
        short.cutPiece(try #require(short.plan.segments.first).id)
        #expect(short.plan.segments.map(\.upperBound) == [6000, 1 << 20])
    }

    @Test("A piece that fits exactly has room, and one byte less has not")
    func holds() {
        let segment = Segment(id: Segment.ID(1), lowerBound: 0, position: 10, upperBound: 40)
        #expect(Fetching.Room(piece: 20, end: 30).holds(segment))
        #expect(!Fetching.Room(piece: 20, end: 29).holds(segment))
        #expect(Fetching.Room(piece: 100, end: 40).holds(segment))
        #expect(!Fetching.Room(piece: 100, end: 39).holds(segment))
    }

    @Test("What was read moves the window on, for this reading only, and never back")
    func advance() {
        var window = ReadingWindow(id: 1, length: 100, position: 10, isStream: false)
        #expect(window.end(behind: 0) == 110 && window.end(behind: 150) == 160)
        window.advance(to: 50, of: 2)
        #expect(window.position == 10)
        window.advance(to: 50, of: 1)
        window.advance(to: 40, of: 1)
        #expect(window.position == 50)
        window.advance(to: .max, of: 1)
        #expect(window.end(behind: 0) == .max)
    }

    @Test("On a long path a piece is as long as 32 requests cost, no longer than the window, and not at the end")
    func longPath() {
        let mebibyte: Int64 = 1 << 20
        func piece(_ isStream: Bool, cost: Double, rate: Double, length: Int64 = 64 * mebibyte) -> Int64 {
            var fetching = Self.reading(length, window: 12 * mebibyte, connections: 32, isStream: isStream)
            fetching.traffic.path.requestCost = cost
            fetching.traffic.path.ratesBefore = [rate]
            return fetching.room.piece
        }
        #expect(piece(false, cost: 0.02, rate: 1e7) == 6_400_000)
        #expect(piece(false, cost: 0.019, rate: 1e7) == mebibyte)
        #expect(piece(true, cost: 0.02, rate: 1e7) == mebibyte)
        #expect(piece(false, cost: 0.02, rate: 1e9) == 12 * mebibyte)
        #expect(piece(false, cost: 0.02, rate: 1e5) == mebibyte)
        #expect(piece(false, cost: 0.02, rate: 1e7, length: 24 * mebibyte + 1) == 6_400_000)
        #expect(piece(false, cost: 0.02, rate: 1e7, length: 24 * mebibyte) == mebibyte)
    }

    @Test(
        "A finished piece continues into the next one if there is room, no lease holds it, and the end is not reached"
    )
    func absorbs() throws {
        let mebibyte: Int64 = 1 << 20
        var fetching = Self.reading(16 * mebibyte, window: 12 * mebibyte)
        fetching.cutPiece(try #require(fetching.plan.segments.first).id)
        #expect(fetching.plan.segments.map(\.upperBound) == [8 * mebibyte, 16 * mebibyte])
        let (first, second) = (fetching.plan.segments[0].id, fetching.plan.segments[1].id)
        #expect(fetching.absorbPiece(behind: second) == nil)
        #expect(fetching.absorbPiece(behind: first) == nil, "there is no room for all of it")
        fetching.window?.advance(to: 4 * mebibyte, of: 1)
        var taken = fetching
        taken.plan.assign(second, to: LeaseID(1))
        #expect(taken.absorbPiece(behind: first) == nil)
        #expect(fetching.absorbPiece(behind: first) == 16 * mebibyte && fetching.plan.segments.count == 1)
    }
}
