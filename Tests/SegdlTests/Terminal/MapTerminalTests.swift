import Foundation
import Origin
import Testing

/// `--progress map` of the real command, on a pseudo-terminal.
@Suite(
    "Map on a terminal",
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "util-linux is not installed"))
struct MapTerminalTests {
    struct Place: Sendable, CustomTestStringConvertible {
        var columns: Int
        var locale: String
        var noColor: String
        /// The characters on the terminal while a connection is within its part.
        var sign: String

        var testDescription: String { "\(self.columns) columns, \(self.locale), NO_COLOR=\(self.noColor)" }
        var hasColors: Bool { self.noColor.isEmpty }
    }

    static let places = [
        Place(columns: 20, locale: "C", noColor: "1", sign: "+-"),
        Place(columns: 40, locale: "C", noColor: "", sign: "+-"),
        Place(columns: 80, locale: "C.UTF-8", noColor: "", sign: "▄░"),
        Place(columns: 200, locale: "C.UTF-8", noColor: "1", sign: "▄░"),
    ]

    /// Interrupts the command as soon as its output has the sign.
    static let shell = """
        words=$(printf '%q ' "$0" "$@")
        SHELL=/bin/bash /usr/bin/script -qefc "stty cols $TEST_COLUMNS rows 24; echo \\$\\$ >pid; exec $words" /dev/null </dev/null |
            while IFS= read -r line || [ -n "$line" ]; do
                printf '%s\\n' "$line"
                [[ -z $told && $line == *"$TEST_SIGN"* ]] && told=1 && kill -INT "$(cat pid)"
            done
        exit "${PIPESTATUS[0]}"
        """

    @Test("A map is drawn as the terminal can display it, never wraps, and is removed at the end", arguments: places)
    func map(place: Place) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    [
                        "--progress", "map", "-s", "4", "--stall-timeout", "1h", "-o", "f.bin",
                        origin.url("/8M/f.bin?stall-after=300000:all"),
                    ],
                    shell: Self.shell,
                    environment: [
                        "TERM": "xterm-256color", "LC_ALL": place.locale, "NO_COLOR": place.noColor,
                        "TEST_COLUMNS": "\(place.columns)", "TEST_SIGN": place.sign,
                    ])
                #expect(outcome.status == 130, "\(outcome)")
                #expect(outcome.output.contains(place.sign))
                #expect(outcome.output.contains("\u{1B}[33m") == place.hasColors)
                #expect(outcome.output.utf8.allSatisfy { $0 < 0x80 } == (place.locale == "C"))
                var screen = Screen(columns: place.columns, rows: 24)
                screen.write(outcome.output)
                let left = screen.lines.joined()
                let isClean =
                    left.hasPrefix("segdl: paused: f.bin, ") && left.hasSuffix("To resume: segdl resume f.bin")
                #expect(isClean, "\(left)")
            }
        }
    }
}
