import Foundation
import Origin
import Testing

/// Lists given with `--list-from`.
@Suite("Lists from pages")
struct ListFromTests {
    private static let page = "<a href='../up'><a href=a.bin><a href=b.txt><a href=sub/>"

    /// Runs the command with an origin that has a page and content for every other path.
    private static func run(
        _ arguments: [String], page: String = Self.page, _ check: (Segdl.Outcome, Segdl, Origin) throws -> Void
    ) async throws {
        try await withOrigin { origin in
            origin.route { request in
                if request.path.hasSuffix("/dir") { return .redirect(to: "\(request.path)/") }
                return request.path.hasSuffix("/") ? .document(page) : .content("/64K/x")
            }
            try await withCommand { command in
                let words = arguments.map { $0.replacing("BASE", with: origin.url("")) }
                try check(try await command.run(words), command, origin)
            }
        }
    }

    @Test("A filter selects by the shell's patterns")
    func filter() async throws {
        let list = ["-q", "--list-from", "BASE/dir"]
        try await Self.run(list + ["--accept", "*.bin", "--accept=c*"]) { outcome, command, origin in
            #expect(outcome.status == 0, "\(outcome)")
            #expect(command.exists("a.bin") && !command.exists("b.txt"))
            #expect(!origin.log.snapshot().requests.contains { $0.path.contains("up") || $0.path.contains("sub") })
        }
        try await Self.run(list + ["--reject", "a*"]) { outcome, command, _ in
            #expect(outcome.status == 0 && !command.exists("a.bin") && command.exists("b.txt"), "\(outcome)")
        }
    }

    @Test("A run says which directories are left out, and a dry run shows the files")
    func remarks() async throws {
        try await Self.run(["--list-from", "BASE/dir/", "--dry-run"]) { outcome, command, origin in
            #expect(
                outcome.status == 0 && outcome.errors.contains("left out of \(origin.url("/dir/")): 1 directory"),
                "\(outcome)")
            #expect(outcome.output.contains("a.bin: 64.0 KiB") && outcome.output.contains("b.txt"), "\(outcome)")
            #expect(!command.exists("a.bin"))
        }
    }

    @Test(
        "A list without files, and options without a list, are errors",
        arguments: [
            (["--list-from", "BASE/dir/", "--accept", "*.iso"], "lists (2)"),
            (["--accept", "*", "BASE/x"], "--accept applies to --list-from"),
            (["--reject", "*", "BASE/x"], "--reject applies to --list-from"),
            (["--list-from", "-", "-i", "-"], "read once"), (["--list-from", "missing"], "cannot be opened"),
            (["--list-from", "BASE/dir/", "--json-path", ".a"], "--json-path applies to lists"),
            (["--list-from", "BASE/dir/", "-o", "one"], "--output names one file"),
        ])
    func errors(arguments: [String], text: String) async throws {
        try await Self.run(arguments) { outcome, _, _ in
            #expect(outcome.status == (text.contains("opened") ? 3 : 2) && outcome.errors.contains(text), "\(outcome)")
        }
    }

    @Test("A page without files names its directories, and a metalink belongs to -i")
    func hints() async throws {
        try await Self.run(["--list-from", "BASE/dir/"], page: "<a href=sub/>") { outcome, _, _ in
            #expect(outcome.status == 2 && outcome.errors.contains("lists 1 directory"), "\(outcome)")
        }
        try await Self.run(["--list-from", "BASE/dir/"], page: "<metalink>") { outcome, _, _ in
            #expect(outcome.status == 2 && outcome.errors.contains("is a metalink"), "\(outcome)")
        }
    }

    @Test("A digest of the list is required of its file")
    func digests() async throws {
        let digest = String(repeating: "0", count: 64)
        try await Self.run(["-q", "--list-from", "BASE/dir/"], page: "<a href=a.bin#sha256=\(digest)>") {
            outcome, command, _ in
            #expect(outcome.status == 9 && !command.exists("a.bin"), "\(outcome)")
        }
    }

    @Test("A name that leads out of the directory rejects the list")
    func names() async throws {
        let digest = String(repeating: "0", count: 64)
        try await Self.run(["--list-from", "BASE/dir/"], page: "\(digest)  ../evil\n") { outcome, _, origin in
            #expect(outcome.status == 11 && outcome.errors.contains("evil"), "\(outcome)")
            #expect(origin.log.snapshot().requests.count == 1)
        }
    }

    @Test("Credentials go to the list's server only, and are not shown")
    func credentials() async throws {
        let digest = String(repeating: "0", count: 64)
        try await withOrigin { other in
            let page = "<a href=a.bin><a href=\(other.url("/64K/b"))#sha256=\(digest)>"
            try await Self.run(["--list-from", "BASE/dir/", "-u", "me:secret"], page: page) { outcome, _, origin in
                #expect(outcome.status == 16 && !outcome.errors.contains("secret"), "\(outcome)")
                let isSent = { (origin: Origin) in
                    Set(
                        origin.log.snapshot().requests.map { entry in
                            entry.headers.contains { $0.name.lowercased() == "authorization" }
                        })
                }
                #expect(isSent(origin) == [true] && isSent(other) == [false])
            }
        }
    }

    @Test("The next page of a list must be on its server")
    func pages() async throws {
        try await withOrigin { origin in
            origin.route { request in
                .document(
                    fields: [("Link", "<http://127.0.0.2:1/next/>; rel=next")],
                    request.path == "/dir/" ? Self.page : "")
            }
            try await withCommand { command in
                let outcome = try await command.run("--list-from", origin.url("/dir/"))
                #expect(outcome.status == 11 && outcome.errors.contains("another server"), "\(outcome)")
            }
        }
    }

    @Test("A list in a file needs the URL that it comes from")
    func files() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                try command.write(
                    "1ebd584fa2a31942b2dfbbda3f53aa00f0e7abe48e88e96c200f0d57845e61a7 *x\n", to: "SHA256SUMS")
                let without = try await command.run("--list-from", "SHA256SUMS")
                #expect(without.status == 2 && without.errors.contains("give a base"), "\(without)")
                let with = try await command.run("-q", "--list-from", "SHA256SUMS", "--base-url", origin.url("/64K/"))
                #expect(with.status == 0 && command.exists("x"), "\(with)")
            }
        }
    }
}
