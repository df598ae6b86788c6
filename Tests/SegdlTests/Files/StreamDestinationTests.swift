import Foundation
import Origin
import Testing

/// Destinations that cannot hold a part file get the bytes in order.
@Suite("Streams as destinations")
struct StreamDestinationTests {
    @Test("A FIFO gets the whole file")
    func pipe() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                ["-q", "-s", "4", "-o", "pipe", origin.url("/24M/f.bin?reset-after=5M:2")],
                shell: #"mkfifo pipe; cat pipe >out & "$0" "$@"; status=$?; wait; exit $status"#)
            #expect(outcome.status == 0 && command.holds("out", 24 << 20), "\(outcome)")
            #expect(try command.names.sorted() == ["out", "pipe"])
        }
    }

    @Test("A link to a FIFO is followed")
    func link() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                ["-q", "-o", "link", origin.url("/1M/f.bin")],
                shell: #"mkfifo pipe; ln -s pipe link; cat pipe >out & "$0" "$@"; status=$?; wait; exit $status"#)
            #expect(outcome.status == 0 && command.holds("out", 1 << 20), "\(outcome)")
        }
    }

    @Test(
        "An open descriptor is written to", arguments: ["/dev/stdout", "/dev/fd/1", "/dev/fd/7", "/proc/self/fd/7"])
    func descriptor(path: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                ["-q", "-o", path, origin.url("/3M/f.bin")],
                shell: #""$0" "$@" \#(path.hasSuffix("7") ? "7" : "")>out"#)
            #expect(outcome.status == 0 && command.holds("out", 3 << 20), "\(outcome)")
        }
    }

    @Test("Any number of files can go to the null device, and no file is left")
    func null() async throws {
        try await withOptionScene { origin, command in
            let urls = [origin.url("/3M/f.bin"), origin.url("/2M/g.bin")]
            let outcome = try await command.run(["-o", "/dev/null", "-o", "/dev/null"] + urls)
            #expect(outcome.status == 0, "\(outcome)")
            #expect(try command.names == [])
        }
    }

    @Test("FIFOs can be read one after the other, and a file without bytes ends one")
    func oneAfterTheOther() async throws {
        try await withOptionScene { origin, command in
            for first in ["/9M/f.bin", "/0/f.bin"] {
                let outcome = try await command.run(
                    ["-q", "-o", "a", "-o", "b", origin.url(first), origin.url("/3M/g.bin")],
                    shell: #"""
                        mkfifo a b; { timeout 60 cat b; timeout 60 cat a; } >out & "$0" "$@"; status=$?; wait
                        rm a b; exit $status
                        """#)
                #expect(outcome.status == 0, "\(outcome)")
                let length = (3 + (first == "/0/f.bin" ? 0 : 9)) << 20
                #expect(FileManager.default.contents(atPath: command.path("out"))?.count == length, "\(outcome)")
            }
        }
    }

    @Test("A download that fails ends its FIFO, and its name is in the message")
    func failing() async throws {
        try await withOptionScene { origin, command in
            var outcome = try await command.run(
                ["-q", "-o", "pipe", origin.url("/1M/f.bin?fail=404:all")],
                shell: #"mkfifo pipe; timeout 60 cat pipe >out & reader=$!; "$0" "$@"; wait $reader"#)
            #expect(outcome.status == 0 && outcome.errors.contains("pipe: "), "\(outcome)")
            outcome = try await command.run(
                ["-q", "-o", "/dev/fd/7", origin.url("/1M/f.bin?fail=404:all")], shell: #""$0" "$@" 7>out"#)
            #expect(outcome.status == 8 && outcome.errors.contains("/dev/fd/7: "), "\(outcome)")
        }
    }

    @Test("The same file can go to the null device twice")
    func twice() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/1M/f.bin")
            let outcome = try await command.run(["--json", "-o", "/dev/null", "-o", "/dev/null", url, url])
            #expect(outcome.events.count { $0["event"] as? String == "completed" } == 2, "\(outcome)")
        }
    }

    @Test(
        "No spelling of standard output goes with --json",
        arguments: ["/dev/fd/01", "/dev/./stdout", "/proc/self/fd/1", "/dev/fd/7"])
    func eventsBeside(path: String) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/1M/f.bin")
            try command.write("\(url)\n  out=\(path)\n", to: "list")
            for arguments in [["-o", path, url], ["-d", "/", "-i", "list"]] {
                let outcome = try await command.run(["--json"] + arguments, shell: #""$0" "$@" 7>&1"#)
                #expect(outcome.status == 2 && outcome.errors.contains("standard output"), "\(outcome)")
            }
        }
    }

    @Test(
        "A descriptor that was closed when segdl started is not open, also if segdl has one with its number",
        arguments: ["/dev/stderr 2>&-", "/dev/fd/0 <&-", "/dev/fd/1 >&-", "/dev/stdout >&-", "/dev/fd/5 5>&-"])
    func closed(redirection: String) async throws {
        let parts = redirection.split(separator: " ").map(String.init)
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                ["-q", "-o", parts[0], origin.url("/1M/f.bin")], shell: #""$0" "$@" \#(parts[1])"#)
            #expect(outcome.status == 3 && outcome.output.isEmpty, "\(outcome)")
            #expect(try command.names == [])
        }
    }

    @Test("A FIFO is not replaced by the file of several tasks, which cannot be a stream")
    func notReplaced() async throws {
        try await withOptionScene { origin, command in
            let options = ["-q", "--one-file", "--shard", "1/1", "--if-exists", "overwrite", "-o", "pipe"]
            let outcome = try await command.run(
                options + [origin.url("/1M/f.bin")],
                shell: #"mkfifo pipe; "$0" "$@"; status=$?; [[ -p pipe ]] && exit $status"#)
            #expect(outcome.status == 12, "\(outcome)")
        }
    }

    @Test("What cannot be a stream is an error: a closed descriptor, one FIFO for two files, a full device")
    func errors() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/3M/f.bin")
            var outcome = try await command.run("-o", "/dev/fd/99", url)
            #expect(outcome.status == 3 && outcome.errors.contains("descriptor 99 is not open"), "\(outcome)")
            outcome = try await command.run(
                ["-o", "pipe", "-o", command.path("pipe"), url, url],
                shell: #"mkfifo pipe; cat pipe >out & exec "$0" "$@""#)
            #expect(outcome.status == 2 && outcome.errors.contains("is a pipe"), "\(outcome)")
            outcome = try await command.run("-o", "/dev/full", url)
            #expect(outcome.status == 13, "\(outcome)")
            outcome = try await command.run("--json", "-o", "/dev/stdout", url)
            #expect(outcome.status == 2 && outcome.errors.contains("--json"), "\(outcome)")
        }
    }
}
