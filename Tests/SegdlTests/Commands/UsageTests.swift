import Foundation
import Origin
import Testing

/// `segdl du` and `segdl gc`, with the real command.
@Suite struct UsageTests {
    /// A finished file, an interrupted one in a subdirectory, and files that are not segdl's.
    private static func withFiles(_ body: (Segdl) async throws -> Void) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                _ = try await command.run(["-q", "-d", "done", origin.url("/1M/a.bin")])
                let slow = origin.url("/16M/b.bin?stall-after=300000:all")
                let interrupted = try await command.run(["-q", "-s", "4", "-d", "done/more", slow]) { process in
                    while origin.log.snapshot().bytesSent < (1 << 20) + 1_200_000 {
                        guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
                    }
                    kill(process, SIGTERM)
                }
                #expect(interrupted.status == 143)
                for name in ["done/own", "done/c.bin.segdl", "done/c.bin.segdl-part"] {
                    try Data(count: 5000).write(to: URL(fileURLWithPath: command.path(name)))
                }
                try await body(command)
            }
        }
    }

    @Test("Disk usage is reported by directory: finished files and parts that are provably ours")
    func usage() async throws {
        try await Self.withFiles { command in
            let outcome = try await command.run("du", "--json", "done")
            let usage = try #require(outcome.events.first)
            #expect(usage["files"] as? Int == 2)
            #expect(usage["bytes_finished"] as? Int == 1 << 20)
            #expect((usage["bytes_parts"] as? Int ?? 0) >= 16 << 20)
            let text = try await command.run("du", "done")
            #expect(
                text.output.hasPrefix("done: 2 downloads, 17.") && text.output.contains("1.00 MiB finished"), "\(text)")
            #expect(try await command.run("du", "nowhere").status == 3)
            #expect(try await command.run("du", "done", "nowhere").status == 16)
        }
    }

    /// Sets the modification time of part and manifest to three hours ago.
    private static func age(_ command: Segdl) throws {
        let old = [FileAttributeKey.modificationDate: Date(timeIntervalSinceNow: -3 * 3600)]
        for name in ["b.bin.segdl", "b.bin.segdl-part"] {
            try FileManager.default.setAttributes(old, ofItemAtPath: command.path("done/more/" + name))
        }
    }

    /// As root, who may read everything, gives the files to another user and runs the command as that user.
    private static let asOther = """
        chmod 000 done/closed done/d.bin.segdl
        if [ "$(id -u)" = 0 ]; then chown -R 65534 .; exec setpriv --reuid 65534 --clear-groups "$0" "$@"; fi
        exec "$0" "$@"
        """

    @Test(
        "Unreadable files and directories are skipped and reported, and the rest is counted or deleted",
        arguments: ["du", "gc"])
    func unreadable(subcommand: String) async throws {
        try await Self.withFiles { command in
            try FileManager.default.createDirectory(
                atPath: command.path("done/closed"), withIntermediateDirectories: false)
            try Data(count: 5000).write(to: URL(fileURLWithPath: command.path("done/d.bin.segdl")))
            try Self.age(command)
            let options = subcommand == "gc" ? ["--older-than", "2h"] : []
            let outcome = try await command.run([subcommand, "--json"] + options + ["done"], shell: Self.asOther)
            let known = outcome.events.first
            #expect(outcome.status == 16, "\(outcome)")
            #expect((known?["bytes_parts"] as? Int ?? 0) >= 16 << 20, "\(outcome)")
            for path in ["done/closed", "done/d.bin.segdl"] {
                #expect(
                    outcome.errors.contains("warning: open\(path.hasSuffix("d") ? "dir" : "") \(path)"), "\(outcome)")
            }
            #expect(
                outcome.errors.hasSuffix(
                    "2 files or directories were skipped. Correct the cause, then run the same command again.\n"))
            if subcommand == "du" { #expect(known?["problems"] as? Int == 2) }
            #expect(command.exists("done/more/b.bin.segdl") == (subcommand == "du"))
            #expect(command.exists("done/more/b.bin.segdl-part") == (subcommand == "du"))
        }
    }

    @Test(
        "A part that is replaced before it is locked stays, and so does its manifest",
        .enabled(if: FaultyDisk.compiler != nil, "a failing disk needs a C compiler"))
    func swapped() async throws {
        try await Self.withFiles { command in
            try Self.age(command)
            let environment = ["LD_PRELOAD": try await FaultyDisk.library.value, "FAULTY_DISK": "flock:swap"]
            let outcome = try await command.run(["gc", "--older-than", "2h", "done"], environment: environment)
            #expect(outcome.status == 0 && outcome.output == "done: deleted 0 downloads, 0 B\n", "\(outcome)")
            for name in ["b.bin.segdl", "b.bin.segdl-part", "b.bin.segdl-part.moved"] {
                #expect(command.exists("done/more/\(name)"), "\(name)")
            }
        }
    }

    @Test("Interrupted downloads are deleted once they are old, and nothing else ever is")
    func clean() async throws {
        try await Self.withFiles { command in
            let paths = ["done/more/b.bin.segdl", "done/more/b.bin.segdl-part"]
            let young = try await command.run("gc", "done")
            #expect(young.status == 0 && young.output == "done: deleted 0 downloads, 0 B\n", "\(young)")
            try Self.age(command)
            let kept = try await command.run("gc", "--older-than", "4h", "done")
            #expect(kept.output == "done: deleted 0 downloads, 0 B\n")
            let trial = try await command.run("gc", "--older-than", "2h", "--dry-run", "done")
            #expect(trial.output.contains("would delete done/more/b.bin: 16.0 MiB"), "\(trial)")
            #expect(paths.allSatisfy { command.exists($0) })
            let deleted = try await command.run("gc", "--older-than", "2h", "done")
            #expect(deleted.output.contains("done: deleted 1 download, 16.0 MiB"), "\(deleted)")
            #expect(!paths.contains { command.exists($0) })
            #expect(
                ["done/a.bin", "done/own", "done/c.bin.segdl", "done/c.bin.segdl-part"].allSatisfy {
                    command.exists($0)
                })
            #expect(try await command.run("gc", "nowhere").status == 3)
        }
    }
}
