import Foundation
import Testing

/// Every option has a test that runs the command with it.
@Suite("Coverage of options")
struct OptionCoverageTests {
    /// The sources of tests that run the command, and the cases of the fault matrix.
    private static func sources() throws -> [String] {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        return try [tests, FaultCase.directory].flatMap { directory in
            let paths = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
            return try paths.filter { $0.hasSuffix(".swift") || $0.hasSuffix(".json") }
                .map { try String(contentsOfFile: directory.path + "/" + $0, encoding: .utf8) }
        }.filter { $0.contains(".run(") || $0.contains("\"run\"") }
    }

    /// Whether a spelling is an argument somewhere: a whole literal, or one up to its `=`, but not text expected in a
    /// message.
    private static func isArgument(_ spelling: String, in source: String) -> Bool {
        ["\"\(spelling)\"", "\"\(spelling)="].contains { literal in
            source.ranges(of: literal).contains { range in
                !["contains(", "says("].contains { source[..<range.lowerBound].hasSuffix($0) }
            }
        }
    }

    @Test("Every spelling of every option and every subcommand is used in a test that runs the command")
    func options() async throws {
        let sources = try Self.sources()
        let outline = try await withCommand { try await CommandOutline($0) }
        #expect(outline.options.count > 100)
        // `get` is the default command, so tests leave it out.
        let words = outline.commands.filter { $0 != "get" } + outline.options.flatMap(\.spellings)
        for word in Set(words) {
            #expect(sources.contains { Self.isArgument(word, in: $0) }, "no test runs the command with \(word)")
        }
    }

    @Test("An argument is distinguished from a word in a message")
    func arguments() {
        #expect(Self.isArgument("--json", in: #"run("--json", url)"#) && Self.isArgument("-o", in: #"["-o"]"#))
        #expect(Self.isArgument("--dir", in: #""--dir=x""#) && !Self.isArgument("--dir", in: #""--directory""#))
        #expect(!Self.isArgument("--json", in: #"errors.contains("--json")"#))
        #expect(!Self.isArgument("--json", in: #"("-w URL", .says("--json"))"#))
    }
}
