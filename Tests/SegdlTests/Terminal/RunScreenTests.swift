import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// What the real command leaves on a pseudo-terminal, compared with approved screens. Numbers are masked.
@Suite(
    "Run on a terminal",
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "util-linux is not installed"))
struct RunScreenTests {
    /// The command writes its process identifier first. `%q` quotes in bash's way, and script runs `$SHELL`.
    static let shell = """
        words=$(printf '%q ' "$0" "$@")
        SHELL=/bin/bash exec /usr/bin/script -qefc "stty cols $TEST_COLUMNS rows 24; echo \\$\\$ >pid; exec $words" /dev/null </dev/null
        """

    @Test("The last lines fit, and Ctrl-C ends many files with one summary", arguments: [40, 80, 200])
    func runs(columns: Int) async throws {
        try await withOrigin { origin in
            var text = ""
            for locale in ["C.UTF-8", "C"] {
                func run(
                    _ title: String, _ arguments: [String], until bytes: Int? = nil, status: Int32
                ) async throws {
                    try await withCommand { command in
                        let sent = origin.log.snapshot().bytesSent
                        let outcome = try await command.run(
                            arguments, shell: Self.shell,
                            environment: [
                                "TERM": "xterm-256color", "LC_ALL": locale, "TEST_COLUMNS": "\(columns)",
                            ]
                        ) { _ in
                            guard let bytes else { return }
                            await origin.log.waitForBytes(sent: sent + Int64(bytes))
                            // Those bytes may still have been for the run before.
                            var number: Int32?
                            while number == nil, !Task.isCancelled {
                                let text = try? String(contentsOfFile: command.path("pid"), encoding: .utf8)
                                number = text.flatMap { Int32($0.dropLast()) }
                                await Task.yield()
                            }
                            guard let process = number else { return }
                            await command.waitForBytes(writtenBy: process, bytes * 3 / 4)
                            kill(process, SIGINT)
                        }
                        #expect(outcome.status == status, "\(outcome)")
                        var screen = Screen(columns: columns, rows: 24)
                        screen.write(outcome.output)
                        text += "=== \(title), \(locale)\n" + screen.lines.map { Self.masked($0) + "\n" }.joined()
                    }
                }
                // Names so short that what fits does not depend on the rate.
                try await run("one file", ["-s", "2", "-o", "f.iso", origin.url("/8M/f.iso")], status: 0)
                let name = "東京オリンピック全録画.mkv"
                try await run("a wide name", ["-s", "1", "-o", name, origin.url("/8M/file.mkv")], status: 0)
                try await run(
                    "three files", ["-j", "1", "-s", "1"] + ["a", "b", "c"].map { origin.url("/8M/\($0).bin") },
                    status: 0)
                let stuck = "?stall-after=2M:all"
                try await run(
                    "one file, interrupted",
                    ["-s", "1", "-o", "file.iso", origin.plainURL("/8M/stuck.iso\(stuck)")], until: 2 << 20,
                    status: 130)
                try await run(
                    "20 files, interrupted",
                    ["-j", "4", "-s", "1"] + (0..<20).map { origin.plainURL("/8M/f\($0).bin\(stuck)") },
                    until: 8 << 20, status: 130)
            }
            try ApprovedScreen.check(text, "run-\(columns)")
        }
    }

    /// The line without the numbers that differ between runs.
    private static func masked(_ line: String) -> String {
        line.replacing(/[0-9.]+ [KMG]iB\/s/, with: "# MiB/s")
            .replacing(/\ in [0-9.]+ s/, with: " in # s")
            .replacing(/[0-9.]+ of 8\.00 MiB/, with: "# of 8.00 MiB")
            .replacing(/file\.iso, [0-9.]+ MiB\./, with: "file.iso, # MiB.")
            .replacing(/[0-9.]+ MiB kept/, with: "# MiB kept")
    }
}
