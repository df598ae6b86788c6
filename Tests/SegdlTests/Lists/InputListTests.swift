import SegmentedDownload
import Testing

@testable import segdl

/// Lists in aria2's form, as text.
@Suite("Input lists")
struct InputListTests {
    /// The entries of a text, each as `line url… [line key=value]…`.
    static func read(_ text: some Sequence<UInt8>) throws(ListProblem) -> [String] {
        var list = InputList(Array(text))
        var lines: [String] = []
        while let entry = try list.next() {
            let options = entry.options.map { "[\(Self.name($0.place)) \($0.key)=\($0.value)]" }
            let problem = entry.problem.map { ["problem \(Self.name($0.place))"] } ?? []
            lines.append(([Self.name(entry.place)] + entry.urls + options + problem).joined(separator: " "))
        }
        return lines
    }

    private static func name(_ place: ListPlace) -> String {
        switch place {
        case .line(let number): "\(number)"
        case .element(let path): path
        }
    }

    @Test(
        "Lines are URLs, tabs separate mirrors, indented lines are options, and other lines are ignored",
        arguments: [
            ("", []),
            ("http://a/b", ["1 http://a/b"]),
            ("http://a/b\n", ["1 http://a/b"]),
            ("\u{FEFF}http://a/b\r\n\r\nhttp://c/d\r\n", ["1 http://a/b", "3 http://c/d"]),
            ("# one\n\n  \t\nhttp://a/b\n# two\n  # three\n\tout=x\n", ["4 http://a/b [7 out=x]"]),
            ("http://a/b\thttp://c/d\t\t http://e/f \t\n", ["1 http://a/b http://c/d http://e/f"]),
            ("http://a/b\n  out = x y \n header=A: b=c\n", ["1 http://a/b [2 out=x y] [3 header=A: b=c]"]),
            ("http://a/#b\n user-info=\n", ["1 http://a/#b [2 user-info=]"]),
            ("http://a/b # c\nhttp://a/c d#e\t# f\n", ["1 http://a/b", "2 http://a/c d#e"]),
            ("  http://a/b\n\tout=x\n HTTPS://c/d?e=f\n", ["1 http://a/b [2 out=x]", "3 HTTPS://c/d?e=f"]),
        ] as [(String, [String])])
    func entries(text: String, entries: [String]) throws {
        #expect(try Self.read(text.utf8) == entries)
    }

    @Test(
        "A malformed line is the problem of its entry, and the others are read",
        arguments: [
            ("  out=x\n split=2\nhttp://a/b\n", ["1 out=x [2 split=2] problem 1", "3 http://a/b"]),
            (
                "http://a/b\n out\n split=2\nhttp://c/d",
                ["1 http://a/b [2 out=] [3 split=2] problem 2", "4 http://c/d"]
            ),
            ("http://a/b\n =x\n", ["1 http://a/b [2 =x=] problem 2"]),
            ("http://a/b http://c/d\nhttp://e/f", ["1 http://a/b http://c/d problem 1", "2 http://e/f"]),
        ])
    func malformed(text: String, entries: [String]) throws {
        #expect(try Self.read(text.utf8) == entries)
    }

    @Test(
        "A list that cannot be read to its end is reported with the line",
        arguments: [
            ("http://a/\0b\n", 1),
            ("a\nb\n" + String(repeating: "x", count: InputList.lineLengthMax + 1), 3),
            ("a\n" + String(repeating: " k=v\n", count: InputList.optionsMax + 1), InputList.optionsMax + 2),
        ])
    func problems(text: String, line: Int) {
        let problem = #expect(throws: ListProblem.self) { try Self.read(text.utf8) }
        #expect(problem?.place == .line(line))
    }

    @Test("An indented URL without a scheme is reported without its secrets")
    func indented() throws {
        var list = InputList(Array("http://a/b\n //u:secret@h/f#secret\n".utf8))
        let problem = try #require(try list.next()?.problem)
        #expect(problem.message.contains("is indented") && !problem.message.contains("secret"), "\(problem)")
    }

    @Test("Bytes that are not UTF-8 are reported with their line")
    func notText() throws {
        var list = InputList(Array("http://a/b\n".utf8) + [0x61, 0xFF, 0x0A] + Array("http://c/d".utf8))
        #expect(try list.next()?.problem == nil)
        #expect(try list.next()?.problem == ListProblem(.line(2), "the line is not UTF-8"))
        #expect(try list.next()?.urls == ["http://c/d"])
    }

    @Test("Any bytes are read to the end, in line order, without empty URLs and keys", arguments: UInt64(0)..<200)
    func total(seed: UInt64) {
        var generator = Seeded(seed)
        let pieces: [[UInt8]] = [
            Array("http://a/b".utf8), Array("\n".utf8), Array("\r\n".utf8), Array("\t".utf8), Array(" ".utf8),
            Array("out=x".utf8), Array("=".utf8), Array("#".utf8), [0], [0xFF], [0xEF, 0xBB, 0xBF], Array("\r".utf8),
        ]
        for _ in 0..<50 {
            let count = Int.random(in: 0..<40, using: &generator)
            let bytes = (0..<count).flatMap { _ in pieces.randomElement(using: &generator) ?? [] }
            var list = InputList(bytes)
            var lineLast = 0
            do {
                while let entry = try list.next() {
                    guard case .line(let number) = entry.place else { return #expect(Bool(false), "\(bytes)") }
                    let isSound =
                        number > lineLast && !entry.urls.isEmpty && entry.urls.allSatisfy { !$0.isEmpty }
                        && entry.options.allSatisfy { !$0.key.isEmpty }
                    #expect(isSound, "\(bytes)")
                    lineLast = number
                }
            } catch {
                guard case .line(let number) = error.place else { return #expect(Bool(false), "\(bytes)") }
                #expect(number > lineLast, "\(bytes)")
            }
        }
    }
}

/// Random numbers from a seed, for reproducible tests.
struct Seeded: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { self.state = seed }

    /// SplitMix64.
    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var word = self.state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }
}
