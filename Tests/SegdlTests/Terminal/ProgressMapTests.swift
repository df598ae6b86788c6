import SegmentedDownload
import SegmentedDownloadCore
import Testing

@testable import segdl

/// A file as cells that show the state of its segments.
@Suite("Progress map")
struct ProgressMapTests {
    static let ascii = ProgressMap.Palette(isUTF8: false, hasColors: false)

    static func segment(
        _ bytes: Range<Int64>, upTo position: Int64, _ state: SegmentStatus.State
    ) -> SegmentStatus {
        SegmentStatus(
            segment: 0, start: bytes.lowerBound, position: position, end: bytes.upperBound, state: state)
    }

    /// Segments of random lengths that cover a file, each with random progress, and with a connection or not.
    static func segments(of length: Int64, seed: UInt64) -> [SegmentStatus] {
        var generator = SplitMix64(seed: seed)
        var segments: [SegmentStatus] = []
        var start: Int64 = 0
        while start < length {
            let end = Int64.random(in: start + 1...min(start + 40, length), using: &generator)
            let state = SegmentStatus.State.allCases.randomElement(using: &generator) ?? .done
            let position = state == .done ? end : Int64.random(in: start..<end, using: &generator)
            segments.append(Self.segment(start..<end, upTo: position, state))
            start = end
        }
        return segments
    }

    @Test(
        "Every byte has one cell, and the cells' lengths differ by at most one byte",
        arguments: [0, 1, 2, 7, 307, 308, 309, 616, 1000, 4_000_000_007, Int64.max - 1, Int64.max])
    func borders(length: Int64) {
        for (columns, rows) in [(1, 1), (17, 4), (77, 4), (197, 4), (297, 2)] {
            let map = ProgressMap([], completeLength: length, columns: columns, rows: rows)
            #expect(Int64(map.cells.count) == min(Int64(columns * rows), length))
            var next: Int64 = 0
            for index in map.cells.indices {
                let bytes = map.bytes(of: index)
                #expect(bytes.lowerBound == next)
                let excess = bytes.upperBound - bytes.lowerBound - length / Int64(map.cells.count)
                #expect(excess == 0 || excess == 1)
                next = bytes.upperBound
            }
            #expect(next == length)
        }
    }

    @Test("A cell shows in this order: completion, a retry, written bytes, a connection, none of these")
    func precedence() {
        let segments = [
            Self.segment(0..<3, upTo: 3, .done), Self.segment(3..<5, upTo: 3, .retrying),
            Self.segment(5..<9, upTo: 5, .fetching), Self.segment(9..<12, upTo: 11, .fetching),
            Self.segment(12..<16, upTo: 13, .waiting),
        ]
        let map = ProgressMap(segments, completeLength: 16, columns: 8, rows: 1)
        #expect(map.lines(Self.ascii) == ["#!!-+++."])
        #expect(map.lines(.init(isUTF8: true, hasColors: false)) == ["█!!░▄▄▄·"])
        let colored = "\u{1B}[32m#\u{1B}[31m!!\u{1B}[33m-++\u{1B}[0m+."
        #expect(map.lines(.init(isUTF8: false, hasColors: true)) == [colored])
        #expect(colored.columns == 8)
    }

    @Test("No colour is left on at the end of a row")
    func reset() {
        let map = ProgressMap(
            [Self.segment(0..<9, upTo: 9, .done)], completeLength: 9, columns: 5, rows: 2)
        #expect(
            map.lines(.init(isUTF8: true, hasColors: true)) == [
                "\u{1B}[32m█████\u{1B}[0m", "\u{1B}[32m████\u{1B}[0m",
            ])
    }

    @Test("A cell shows what its bytes show one by one", arguments: UInt64(0)..<100)
    func bytes(seed: UInt64) {
        let length = Int64(seed * 7 % 400 + 1)
        let segments = Self.segments(of: length, seed: seed)
        let map = ProgressMap(segments, completeLength: length, columns: Int(seed % 50) + 1, rows: 4)
        for (index, cell) in map.cells.enumerated() {
            var written = 0
            var states: Set<SegmentStatus.State> = []
            for byte in map.bytes(of: index) {
                guard let segment = segments.first(where: { byte < $0.end ?? .max }) else { continue }
                if byte < segment.position { written += 1 } else { states.insert(segment.state) }
            }
            let state: SegmentStatus.State =
                states.isEmpty
                ? .done : states.contains(.retrying) ? .retrying : states.contains(.fetching) ? .fetching : .waiting
            let fill: ProgressMap.Fill = states.isEmpty ? .all : written > 0 ? .some : .none
            #expect(cell == ProgressMap.Cell(fill: fill, state: state), "cell \(index) with seed \(seed)")
        }
    }

    @Test("All rows but the last are full, and every cell is shown")
    func rows() {
        let segments = Self.segments(of: 1000, seed: 1)
        let lines = ProgressMap(segments, completeLength: 1000, columns: 30, rows: 3).lines(Self.ascii)
        #expect(lines.map(\.columns) == [30, 30, 30])
        #expect(
            lines.joined()
                == ProgressMap(segments, completeLength: 1000, columns: 90, rows: 1).lines(Self.ascii).joined())
        let short = ProgressMap([], completeLength: 70, columns: 30, rows: 3).lines(Self.ascii)
        #expect(short.map(\.columns) == [30, 30, 10])
        #expect(ProgressMap([], completeLength: 0, columns: 30, rows: 3).lines(Self.ascii).isEmpty)
        #expect(ProgressMap([], completeLength: 9, columns: 30, rows: 0).lines(Self.ascii).isEmpty)
    }

    // MARK: On a board

    static func board(
        active: Int, of count: Int, _ palette: ProgressMap.Palette = Self.ascii, length: Int64 = 10 << 20
    ) -> ProgressBoard {
        var board = ProgressBoard(filesCount: count, palette: palette)
        for number in 0..<active {
            let file = ProgressBoardTests.file(number)
            board.take(ProgressBoardTests.progress(length / 2, of: length), of: file, at: .zero)
            if let id = file.id {
                board.note(
                    [
                        Self.segment(0..<length / 2, upTo: length / 2, .done),
                        Self.segment(length / 2..<length, upTo: length / 2, .fetching),
                    ], of: id)
            }
        }
        board.tick(at: .zero)
        return board
    }

    @Test("One file has a line and four rows, several have a line and two rows each, and a last line has the totals")
    func shares() {
        let only = Self.board(active: 1, of: 1).lines(.init(columns: 80, rows: 24), at: .zero)
        let rows = Array(repeating: String(repeating: "#", count: 77), count: 2)
        #expect(Array(only.dropFirst()) == rows + rows.map { $0.replacing("#", with: "-") })
        #expect(only.first?.hasPrefix("file-0.bin  ") == true && only.first?.contains("50%") == true)
        #expect(only.first?.contains("[") == false, "the map is the bar")
        let many = Self.board(active: 3, of: 5).lines(.init(columns: 80, rows: 24), at: .zero)
        let names = ["file-0.bi", "file-1.bi", "file-2.bi"]
        #expect(many.map { String($0.prefix(9)) } == names.flatMap { [$0, "#########", "---------"] } + ["0/5 files"])
        let low = Self.board(active: 3, of: 5).lines(.init(columns: 80, rows: 10), at: .zero)
        #expect(low.map { $0.contains("#+-") } == [false, true, false, true, false, true, false])
    }

    @Test("Without room for every map bars are shown")
    func bars() {
        let size = Terminal.Size(columns: 80, rows: 24)
        let board = Self.board(active: 12, of: 20)
        #expect(board.mapped(size).isEmpty)
        #expect(board.lines(size, at: .zero) == ProgressBoardTests.board(active: 12, of: 20).lines(size, at: .zero))
        #expect(Self.board(active: 7, of: 20).mapped(size).count == 7)
    }

    @Test("A file of unknown length has the bar's line and no map")
    func unknown() {
        var board = ProgressBoard(filesCount: 1, palette: Self.ascii)
        let file = ProgressBoardTests.file(0)
        board.connect(file, at: .zero)
        #expect(board.lines(.init(columns: 80, rows: 24), at: .zero) == ["file-0.bin: connecting"])
        board.take(ProgressBoardTests.progress(5 << 20, of: nil), of: file, at: .zero)
        if let id = file.id {
            board.note([SegmentStatus(segment: 0, start: 0, position: 5, end: nil, state: .fetching)], of: id)
        }
        var progress = DownloadProgress()
        progress.bytesDone = 5 << 20
        progress.connections = 1
        board.tick(at: .zero)
        let bar = ProgressBar(title: "file-0.bin", progress: progress, elapsed: .seconds(7)).line(width: 77)
        #expect(board.lines(.init(columns: 80, rows: 24), at: .seconds(7)) == [bar])
    }

    @Test("A file that waits for a retry shows the reason above its map")
    func remark() {
        var board = Self.board(active: 1, of: 1)
        let file = ProgressBoardTests.file(0)
        board.take(ProgressBoardTests.progress(5 << 20, of: 10 << 20, connections: 0), of: file, at: .zero)
        let retry = DownloadEvent.retrying(DownloadError(.network, "reset"), attempt: 1, delay: .seconds(2))
        board.take(retry, of: file, at: .zero)
        // While the segments are unknown no map is shown.
        if let id = file.id { board.note([], of: id) }
        let lines = board.lines(.init(columns: 80, rows: 24), at: .zero)
        #expect(lines.first == "file-0.bin: retry 1 in 0:02: reset" && lines.count == 5)
        board.take(.paused(DownloadProgress()), of: file, at: .zero)
        #expect(board.lines(.init(columns: 80, rows: 24), at: .zero).isEmpty)
    }

    @Test(
        "No line of a map is too wide, and there are never more lines than the terminal has rows",
        arguments: [ascii, ProgressMap.Palette(isUTF8: true, hasColors: true)])
    func sizes(palette: ProgressMap.Palette) {
        func isWithin(_ columns: Int, _ rows: Int, _ board: ProgressBoard) -> Bool {
            let lines = board.lines(.init(columns: columns, rows: rows), at: .zero)
            return lines.count <= max(rows - 2, 1) && lines.allSatisfy { $0.columns <= max(columns - 3, 1) }
        }
        for (active, count) in [(1, 1), (5, 9), (30, 90)] {
            let board = Self.board(active: active, of: count, palette, length: 1_000_003)
            for rows in 1...60 {
                #expect(isWithin(20, rows, board), "\(active) files on 20 by \(rows)")
            }
            for columns in 1...300 where active <= 5 {
                #expect(isWithin(columns, 24, board), "\(active) files on \(columns) by 24")
            }
        }
    }

    @Test("Colours are used if the terminal has them and the user did not disable them")
    func colors() {
        for name in ["xterm-256color", "linux", "tmux", "vte"] {
            #expect(Terminal.hasColors(name: name, noColor: nil))
            #expect(Terminal.hasColors(name: name, noColor: ""), "present and not empty is what counts")
            #expect(!Terminal.hasColors(name: name, noColor: "0"))
        }
        for name in [nil, "", "dumb", "unknown", "vt100", "vt220", "xterm-mono", "linux-m"] {
            #expect(!Terminal.hasColors(name: name, noColor: nil))
        }
    }
}
