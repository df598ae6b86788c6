import Foundation
import Origin
import Testing

/// Options for the destination, with the real command.
@Suite("Options: destination")
struct DestinationOptionTests {
    @Test(
        "A file has the given name, in the given directory",
        arguments: ["-o", "--output", "--out"], ["-d", "--dir", "-P"])
    func destination(output: String, dir: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("-q", output, "sub/x.bin", dir, "new", origin.url("/64k/f.bin"))
            #expect(outcome.status == 0 && command.holds("new/sub/x.bin", 64 << 10), "\(outcome)")
            let own = try await command.run("-q", output, "kept/", origin.url("/64k/f.bin"))
            #expect(own.status == 0 && command.holds("kept/f.bin", 64 << 10), "\(own)")
        }
    }

    @Test("With --no-create-dirs no directory is created")
    func noDirectories() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("-q", "--no-create-dirs", "-d", "new", origin.url("/64k/f.bin"))
            #expect(outcome.status == 3 && !command.exists("new"), "\(outcome)")
            #expect(origin.log.snapshot().requests.isEmpty)
            let created = try await command.run("-q", "--create-dirs", "-d", "new", origin.url("/64k/f.bin"))
            #expect(created.status == 0 && command.holds("new/f.bin", 64 << 10), "\(created)")
        }
    }

    @Test(
        "A partial download is resumed or not, as the option says",
        arguments: [
            ["-c"], ["--continue"], ["-c", "auto"], ["--continue=must"], ["--continue", "no"], ["-c", "no"],
        ])
    func continuation(option: [String]) async throws {
        try await withOptionScene { origin, command in
            let interrupted = try await command.interrupted(
                ["-s", "1", "-o", "f.bin", origin.plainURL("/4M/f.bin?stall-after=1M:all")])
            #expect(interrupted.status == 130, "\(interrupted)")
            let outcome = try await command.run(["--json"] + option + ["-o", "f.bin", origin.plainURL("/4M/f.bin")])
            #expect(outcome.status == 0 && command.holds("f.bin", 4 << 20), "\(outcome)")
            let kept = try #require(outcome.event("started")?["resumed_from"] as? Int)
            #expect((kept == 0) == (option.last == "no"), "\(kept)")
        }
    }

    @Test(
        "An existing file is compared with the server's, kept, kept beside the new one, replaced, or an error",
        arguments: [("verify", 12, 1), ("skip", 0, 1), ("rename", 0, 1), ("overwrite", 0, 2), ("fail", 12, 1)]
            as [(String, Int32, UInt64)])
    func existing(how: String, status: Int32, seed: UInt64) async throws {
        try await withOptionScene { origin, command in
            let first = try await command.run("-q", "-o", "f.bin", origin.plainURL("/64k/f.bin"))
            #expect(first.status == 0, "\(first)")
            let outcome = try await command.run(
                "-q", "--if-exists", how, "-o", "f.bin", origin.plainURL("/64k/f.bin?seed=2"))
            #expect(outcome.status == status, "\(outcome)")
            #expect(command.holds("f.bin", 64 << 10, seed: seed))
            #expect(command.holds("f.1.bin", 64 << 10, seed: 2) == (how == "rename"))
            // The same file again is an error only with `fail`.
            let same = try await command.run(
                "-q", "--if-exists", how, "-o", "f.bin", origin.plainURL("/64k/f.bin?seed=\(seed)"))
            #expect(same.status == (how == "fail" ? 12 : 0), "\(same)")
        }
    }

    @Test(
        "Brackets and braces expand to files, or are literal with -g", arguments: ["-g", "--no-glob", "--globoff"])
    func glob(option: String) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/1k/f[1-2]{a,b}.bin")
            let many = try await command.run("-q", url)
            #expect(many.status == 0 && ["f1a.bin", "f2b.bin"].allSatisfy { command.exists($0) }, "\(many)")
            let one = try await command.run("-q", option, url)
            #expect(one.status == 0 && command.holds("f[1-2]{a,b}.bin", 1024), "\(one)")
            #expect(origin.log.snapshot().requests.last?.path == "/1k/f%5B1-2%5D%7Ba,b%7D.bin")
        }
    }

    @Test("The files of all lists are fetched", arguments: ["-i", "--input-file"])
    func list(option: String) async throws {
        try await withOptionScene { origin, command in
            try command.write(origin.url("/64k/a.bin") + "\n  out=x.bin\n", to: "one")
            try command.write(origin.url("/64k/b.bin") + "\n", to: "two")
            let outcome = try await command.run("-q", option, "one", option, "two")
            #expect(outcome.status == 0, "\(outcome)")
            #expect(command.holds("x.bin", 64 << 10) && command.holds("b.bin", 64 << 10))
        }
    }
}
