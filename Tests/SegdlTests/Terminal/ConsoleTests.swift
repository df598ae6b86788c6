import Foundation
import Testing

@testable import segdl

/// Status lines that are redrawn in place, on a terminal that wraps and scrolls.
@Suite("Console")
struct ConsoleTests {
    /// What a terminal shows after `body` has written.
    static func screen(columns: Int = 20, rows: Int = 6, _ body: (Console) -> Void) throws -> [String] {
        let path = NSTemporaryDirectory() + "segdl-console-" + UUID().uuidString
        try Data().write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        let sink = LineSink(descriptor: file.fileDescriptor)
        body(Console(sink) { columns })
        sink.drain()
        try file.close()
        var screen = Screen(columns: columns, rows: rows)
        screen.write(String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self))
        return screen.lines
    }

    @Test("Without status lines each line is printed as it is")
    func plain() throws {
        #expect(
            try Self.screen {
                $0.write("a"); $0.write("b")
            } == ["a", "b"])
    }

    @Test(
        "Lines scroll above the status lines, and no old status line is left", arguments: 1...5
    )
    func scrolling(count: Int) throws {
        let lines = try Self.screen { console in
            for number in 0..<20 {
                console.show((0..<count).map { "status \($0) at \(number)" })
                console.write("line \(number)")
            }
            console.show((0..<count).map { "last \($0)" })
        }
        #expect(lines == (0..<20).map { "line \($0)" } + (0..<count).map { "last \($0)" })
    }

    @Test("Fewer or more status lines replace each other")
    func changing() throws {
        let lines = try Self.screen { console in
            for count in [3, 1, 4, 2, 0, 3, 5, 1] {
                console.show((0..<count).map { "status \($0) of \(count)" })
                console.write("line \(count)")
            }
            console.show([])
        }
        #expect(lines == [3, 1, 4, 2, 0, 3, 5, 1].map { "line \($0)" })
    }

    @Test("A line too wide for the terminal wraps, and the status lines below it stay complete")
    func wrapping() throws {
        let lines = try Self.screen(columns: 10) { console in
            console.show(["one", "two"])
            console.write("0123456789abcde")
            console.show(["three", "four"])
        }
        #expect(lines == ["0123456789", "abcde", "three", "four"])
    }

    @Test("A message that ends in the last column is shown whole above status lines", arguments: [9, 10, 11, 20])
    func full(columns: Int) throws {
        let message = String("0123456789".prefix(columns)) + String(repeating: "x", count: max(columns - 10, 0))
        let lines = try Self.screen(columns: 10) { console in
            console.show(["one", "two"])
            console.write(message)
            console.show(["three", "four"])
        }
        #expect(lines.joined() == message + "threefour")
    }

    @Test("Status lines that wrap after the terminal became narrower are removed completely")
    func narrower() throws {
        let lines = try Self.screen(columns: 10) { console in
            console.write("line")
            console.show(["0123456789abcde", "0123456789"])
            console.forget()
            console.show(["one", "two"])
        }
        #expect(lines == ["line", "one", "two"])
    }

    @Test("Colour sequences do not count toward the width of a status line")
    func colors() throws {
        let lines = try Self.screen(columns: 10) { console in
            console.write("line")
            for sign in ["#", "+"] {
                let cells = String(repeating: sign, count: 8)
                console.show(["name", "\u{1B}[32m\(cells)\u{1B}[33m-\u{1B}[0m", "\u{1B}[31m\(cells)\u{1B}[0m"])
            }
        }
        #expect(lines == ["line", "name", "++++++++-", "++++++++"])
    }
}
