import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A finished file, and another URL for the same destination that has the same tag and length.
@Suite("A finished file and another URL with the same tag", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct FinishedFileTests {
    /// `a` is the first file, complete; `body` requests the second.
    private static func run(_ body: (Nginx, Segdl) async throws -> Void) async throws {
        try await TwoFiles.run { nginx, command in
            let first = try await command.run("-q", "-o", "a", nginx.url("part1.bin"))
            #expect(first.status == 0 && command.holds("a", TwoFiles.one), "\(first)")
            try await body(nginx, command)
        }
    }

    @Test("The second file is fetched and replaces the first", arguments: ["1", "4", "auto"])
    func replaced(segments: String) async throws {
        try await Self.run { nginx, command in
            let second = try await command.run("--json", "-s", segments, "-o", "a", nginx.url("part2.bin"))
            #expect(second.status == 0 && command.holds("a", TwoFiles.other), "\(second)")
            #expect(second.bytesFetched.map { $0 >= TwoFiles.length } == true, "\(second)")
            #expect(try command.contents().keys.sorted() == ["a"])
        }
    }

    @Test("The first file stays complete until the second is, also after an interruption")
    func interrupted() async throws {
        try await Self.run { nginx, command in
            try nginx.nearlyStop(true)
            let outcome = try await command.run(["-s", "4", "-o", "a", nginx.url("part2.bin")]) {
                process in
                await command.waitForBytes(writtenBy: process, 1_500_000)
                let isFirst = command.holds("a", TwoFiles.one)
                #expect(isFirst, "while the second file is fetched")
                kill(process, SIGINT)
            }
            #expect(outcome.status == 130 && command.holds("a", TwoFiles.one), "\(outcome)")
            try nginx.nearlyStop(false)
            let again = try await command.run("-s", "4", "-o", "a", nginx.url("part2.bin"))
            #expect(again.status == 0 && command.holds("a", TwoFiles.other), "\(again)")
        }
    }

    @Test("The first file stays complete if the second cannot be fetched")
    func failed() async throws {
        try await Self.run { nginx, command in
            try nginx.nearlyStop(true)
            let outcome = try await command.run(
                ["--retry", "0", "-s", "4", "-o", "a", nginx.url("part2.bin")]
            ) { process in
                await command.waitForBytes(writtenBy: process, 1_500_000)
                nginx.stop()
            }
            #expect(outcome.status == 4 && command.holds("a", TwoFiles.one), "\(outcome)")
        }
    }

    @Test("With different lengths the result is exit 12, and the first file stays")
    func otherLength() async throws {
        try await Self.run { nginx, command in
            try nginx.serve(Array(TwoFiles.other.dropLast()), as: "part2.bin", at: TwoFiles.date)
            let second = try await command.run("-o", "a", nginx.url("part2.bin"))
            #expect(second.status == 12 && second.errors.contains("error[exists]"), "\(second)")
            #expect(command.holds("a", TwoFiles.one))
        }
    }

    @Test("The same URL costs one conditional request without a body")
    func sameURL() async throws {
        try await Self.run { nginx, command in
            let before = nginx.requests.count
            let again = try await command.run("--json", "-o", "a", nginx.url("part1.bin"))
            #expect(again.status == 0 && command.holds("a", TwoFiles.one), "\(again)")
            let requests = nginx.requests.dropFirst(before)
            #expect(requests.count == 1 && requests.first?.contains("\" 304 0 ") == true, "\(requests)")
        }
    }
}
