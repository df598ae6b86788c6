import Foundation
import Origin
import Testing

/// Options for output, with the real command.
@Suite("Options: output")
struct OutputOptionTests {
    @Test("With --quiet only errors are printed", arguments: ["-q", "--quiet"])
    func quiet(option: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(option, origin.url("/64k/f.bin"))
            #expect(outcome.status == 0 && outcome.output.isEmpty && outcome.errors.isEmpty, "\(outcome)")
            let failed = try await command.run(option, origin.url("/64k/g.bin?fail=404:all"))
            #expect(failed.status == 8 && failed.errors.hasPrefix("segdl: error[server]"), "\(failed)")
        }
    }

    @Test("Segments and retries are printed with --verbose only", arguments: ["-v", "--verbose"])
    func verbose(option: String) async throws {
        try await withOptionScene { origin, command in
            for arguments in [[option], []] {
                let url = origin.url("/1M/\(arguments.count).bin?close-after=100000")
                let outcome = try await command.run(arguments + [url])
                #expect(outcome.status == 0, "\(outcome)")
                for word in ["segment 0 opened", "segment 0 retry", "segment 0 done"] {
                    #expect(outcome.errors.contains(word) != arguments.isEmpty, "\(outcome)")
                }
            }
        }
    }

    @Test(
        "Progress is a bar that is redrawn, lines, or nothing",
        arguments: [("bar", true, false), ("log", false, true), ("none", false, false)])
    func progress(how: String, isDrawn: Bool, isLogged: Bool) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("--progress", how, origin.url("/64k/f.bin"))
            #expect(outcome.status == 0 && outcome.errors.contains("f.bin: 64.0 KiB in "), "\(outcome)")
            #expect(outcome.errors.contains("\r") == isDrawn, "\(outcome)")
            #expect(outcome.errors.contains("f.bin: 64.0 KiB, from ") == isLogged, "\(outcome)")
        }
    }

    @Test("A dry run of resume reports that there are no downloads, or that one does not exist")
    func dryRun() async throws {
        try await withOptionScene { _, command in
            let none = try await command.run("resume", "--dry-run", "--all")
            #expect(none.status == 0 && none.errors.contains("nothing to resume"), "\(none)")
            let other = try await command.run("resume", "--dry-run", "none.bin")
            #expect(other.status == 14 && other.errors.contains("there is no manifest none.bin.segdl"), "\(other)")
        }
    }
}
