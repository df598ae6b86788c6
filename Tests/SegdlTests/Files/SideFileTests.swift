import Foundation
import Origin
import Testing

/// Files that a run writes besides the downloads: an obstacle to them does not stop the run.
@Suite struct SideFileTests {
    @Test("Figures are not written to a pipe without a reader, and the run ends and reports it")
    func statsWithoutReader() async throws {
        try await withOptionScene { origin, command in
            let arguments = ["--stats", "pipe", "-o", "f.bin", origin.url("/1M/f.bin")]
            let outcome = try await command.run(arguments, shell: #"mkfifo pipe && exec "$0" "$@""#)
            #expect(outcome.status == 0 && command.holds("f.bin", 1 << 20), "\(outcome)")
            let isSaid = outcome.errors.contains("not written to pipe: no program reads from it")
            #expect(isSaid, "\(outcome)")
        }
    }

    @Test("Figures are written to a pipe with a reader, to a file whose content they replace, and to standard error")
    func statsWritten() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/1M/f.bin")
            // Opened for reading and writing, so that it has a reader from the start.
            let piped = try await command.run(
                ["-q", "--stats", "pipe", "-o", "f.bin", url],
                shell: #"mkfifo pipe; exec 3<>pipe; "$0" "$@" || exit; read -r line <&3; echo "$line""#)
            #expect(piped.status == 0, "\(piped)")
            try command.write(String(repeating: "x", count: 10_000), to: "file")
            let filed = try await command.run("-q", "--stats", "file", "-o", "g.bin", url)
            #expect(filed.status == 0, "\(filed)")
            let text = try String(contentsOfFile: command.path("file"), encoding: .utf8)
            let shown = try await command.run("-q", "--stats", "/dev/stderr", "-o", "h.bin", url)
            #expect(shown.status == 0, "\(shown)")
            for line in [piped.output, text, shown.errors] {
                #expect(try JSON(line)["completed"]?.double == 1, "\(line)")
            }
        }
    }

    @Test("A lock on the history that another program holds blocks no run")
    func historyLocked() async throws {
        try await withOptionScene { origin, command in
            let arguments = ["-q", "--keep-history", "h.json", "-o", "f.bin", origin.url("/1M/f.bin")]
            let outcome = try await command.run(arguments, shell: #"exec 9>>h.json; flock -x 9; "$0" "$@" 9>&-"#)
            #expect(outcome.status == 0 && command.holds("f.bin", 1 << 20), "\(outcome)")
            let again = try await command.run("-q", "--keep-history", "h.json", "-o", "g.bin", origin.url("/1M/f.bin"))
            #expect(again.status == 0, "\(again)")
            let text = try String(contentsOfFile: command.path("h.json"), encoding: .utf8)
            #expect(try JSON.lines(text).compactMap { $0["path"]?.text } == ["g.bin"])
        }
    }
}
