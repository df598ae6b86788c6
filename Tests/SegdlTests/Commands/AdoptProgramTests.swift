import Foundation
import Origin
import TestSupport
import Testing

/// `segdl adopt` for partial files that other programs left.
@Suite("Adopting from other programs", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct AdoptProgramTests {
    /// A program and how it is run; the URL is appended.
    struct Program: Sendable, CustomTestStringConvertible {
        var words: [String]
        /// Whether it fetches with four connections.
        var isParallel = false

        var testDescription: String { self.words[0] }
        var path: String? {
            ["/usr/bin/", "/usr/local/bin/"].map { $0 + self.words[0] }
                .first { FileManager.default.isExecutableFile(atPath: $0) }
        }
    }

    private static let programs = [
        Program(words: ["curl", "-s", "-o", "f.bin"]), Program(words: ["wget", "-q", "-O", "f.bin"]),
        Program(words: ["wget2", "-q", "-O", "f.bin"]),
        // Its cache would hide how much it has received.
        Program(words: ["aria2c", "-q", "-x", "4", "-k", "1M", "--disk-cache=0", "-o", "f.bin"], isParallel: true),
        Program(
            words: [
                "aria2c", "-q", "-x", "4", "-k", "1M", "--disk-cache=0", "--file-allocation=none", "-o", "f.bin",
            ], isParallel: true),
        Program(words: ["axel", "-q", "-n", "4", "-o", "f.bin"], isParallel: true),
    ]

    @Test("A file that a program left is completed, and what is there is kept", arguments: programs, [SIGINT, SIGKILL])
    func program(_ program: Program, signal: Int32) async throws {
        guard let path = program.path else {
            withKnownIssue("\(program.words[0]) is not installed", isIntermittent: true) {}
            return
        }
        try await Nginx.run(Nginx.Settings(stopsAfter: "2m")) { nginx in
            try nginx.serve(AdoptTests.content)
            try nginx.nearlyStop(true)
            try await withCommand { command in
                let received = program.isParallel ? 6 << 20 : 3 << 19
                let ended = try await Child.run(
                    [path] + program.words.dropFirst() + [nginx.url()], in: command.directory,
                    log: command.path(".program"), environment: ["no_proxy": "*", "HOME": command.directory]
                ) { child in
                    await command.waitForBytes(writtenBy: child.identifier, received)
                    child.signal(signal)
                }
                #expect(!ended.isOverdue, "\(ended)")
                try nginx.nearlyStop(false)

                let outcome = try await command.run("adopt", "--json", "-s", "1", "f.bin", nginx.url())
                #expect(outcome.status == 0 && command.holds("f.bin", AdoptTests.content), "\(outcome)")
                let adopted = try #require(outcome.event("adopted"))
                let numbers = adopted.compactMapValues { ($0 as? NSNumber)?.intValue }
                let (found, kept) = (numbers["bytes_found"] ?? 0, numbers["bytes_kept"] ?? 0)
                #expect((received / 2..<AdoptTests.length).contains(found) && kept == found, "\(adopted)")
                let fetched = (numbers["bytes_compared"] ?? .max) + (outcome.bytesFetched ?? .max)
                #expect(fetched <= AdoptTests.length - found + found / 50, "\(outcome)")
                // The control file too is gone.
                #expect(try AdoptTests.names(command).filter { $0.hasPrefix("f.bin") } == ["f.bin"])
            }
        }
    }
}
