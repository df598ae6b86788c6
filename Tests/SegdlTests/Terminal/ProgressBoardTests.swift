import SegmentedDownload
import Testing

@testable import segdl

/// Many files on a terminal, as lines.
@Suite("Progress board")
struct ProgressBoardTests {
    static func file(_ number: Int, _ name: String? = nil) -> TransferFile {
        TransferFile(id: .init(rawValue: "\(number)"), path: "dir/\(name ?? "file-\(number).bin")")
    }

    static func progress(_ done: Int64, of total: Int64?, connections: Int = 1) -> DownloadEvent {
        var progress = DownloadProgress()
        progress.bytesDone = done
        progress.bytesTotal = total
        progress.rate = 1_048_576
        progress.connections = connections
        return .progress(progress)
    }

    static func board(active: Int, of count: Int) -> ProgressBoard {
        var board = ProgressBoard(filesCount: count)
        for number in 0..<active { board.take(Self.progress(5 << 20, of: 10 << 20), of: Self.file(number), at: .zero) }
        board.tick(at: .zero)
        return board
    }

    @Test("Active files have a line each, and the last line has the totals")
    func lines() {
        var board = Self.board(active: 3, of: 5)
        let lines = board.lines(.init(columns: 100, rows: 24), at: .zero)
        #expect(lines.map { String($0.prefix(10)) } == ["file-0.bin", "file-1.bin", "file-2.bin", "0/5 files "])
        #expect(lines.last?.contains("15.0 MiB") == true && lines.last?.contains("3 conn") == true)
        #expect(lines.last?.contains("%") == false, "two lengths are unknown")
        board.take(.failed(DownloadError(.server, "404"), DownloadProgress()), of: Self.file(1), at: .zero)
        let later = board.lines(.init(columns: 100, rows: 24), at: .zero)
        #expect(later.map { String($0.prefix(10)) } == ["file-0.bin", "file-2.bin", "1/5 files,"])
        #expect(later.last?.contains("1/5 files, 1 failed") == true)
    }

    @Test("Once every length is known there is a percentage, and after the last file no line is left")
    func total() {
        var board = Self.board(active: 2, of: 2)
        #expect(board.lines(.init(columns: 100, rows: 24), at: .zero).last?.contains("50%") == true)
        for number in 0..<2 { board.take(.paused(DownloadProgress()), of: Self.file(number), at: .zero) }
        #expect(board.lines(.init(columns: 100, rows: 24), at: .zero).isEmpty)
    }

    @Test(
        "At any terminal size no line is too wide, and two rows stay free",
        arguments: [1, 2, 20, 39, 40, 80, 200])
    func sizes(columns: Int) {
        for rows in [1, 2, 3, 4, 5, 24, 50] {
            for active in [0, 1, 2, 3, 21, 22, 64] {
                var board = Self.board(active: active, of: 1000)
                let name = String(repeating: "名", count: 60)
                board.take(Self.progress(1 << 40, of: nil, connections: 64), of: Self.file(999, name), at: .zero)
                let retry = DownloadError(.network, "no connection at all to that host")
                board.take(.retrying(retry, attempt: 3, delay: .seconds(7)), of: Self.file(998), at: .zero)
                let lines = board.lines(.init(columns: columns, rows: rows), at: .zero)
                #expect(lines.count <= max(rows - 2, 1))
                #expect(lines.allSatisfy { $0.columns <= max(columns - 3, 1) }, "\(lines)")
                if columns >= 40 { #expect(lines.last?.hasPrefix("0/1000 files") == true, "\(lines)") }
            }
        }
    }

    @Test("Files that do not fit are counted")
    func hidden() {
        let lines = Self.board(active: 30, of: 100).lines(.init(columns: 80, rows: 13), at: .zero)
        #expect(lines.count == 11)
        #expect(lines[9] == "… and 21 more")
    }

    @Test("Bars are aligned, and every line has the same columns")
    func columns() {
        var board = Self.board(active: 3, of: 10)
        board.take(Self.progress(1, of: 12), of: Self.file(7, "a-much-longer-name-than-others.tar.gz"), at: .zero)
        let lines = board.lines(.init(columns: 120, rows: 24), at: .zero).dropLast()
        #expect(Set(lines.map { String($0.prefix { $0 != "[" }).columns }).count == 1)
        #expect(Set(lines.map(\.columns)).count == 1)
    }

    @Test("A waiting file shows the reason until bytes arrive")
    func remark() {
        var board = ProgressBoard(filesCount: 2)
        let retry = DownloadEvent.retrying(DownloadError(.network, "reset"), attempt: 1, delay: .seconds(2))
        board.take(retry, of: Self.file(0), at: .seconds(5))
        for (now, text) in [(5, "retry 1 in 0:02: reset"), (6, "retry 1 in 0:01: reset"), (7, "retry 1: reset")] {
            let lines = board.lines(.init(columns: 80, rows: 24), at: .seconds(now))
            #expect(lines.first == "file-0.bin: \(text)")
        }
        board.take(Self.progress(5, of: 10), of: Self.file(0), at: .zero)
        #expect(board.lines(.init(columns: 80, rows: 24), at: .zero).first?.contains("50%") == true)
    }
}
