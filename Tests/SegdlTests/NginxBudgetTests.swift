import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Many files of several hosts under one budget, counted by nginx. `Benchmarks/many-hosts` does the same at full size.
@Suite(.enabled(if: Nginx.path != nil, "nginx is not installed"))
struct NginxBudgetTests {
    private struct File {
        let name: String
        let host: Int
        let length: Int64
    }

    /// Of lengths that are mixed, and spread over three hosts.
    private static let files: [File] = (0..<12).map { number in
        let halves = 1 + number * 5 % 12
        return File(name: "f\(number).bin", host: number % 3 + 1, length: Int64(halves) << 19)
    }

    /// Serves the files under limits of nginx's own, fetches them with six connections, three a host, and returns what it says.
    private func fetch(allowing max: (all: Int, host: Int)) async throws -> (outcome: Segdl.Outcome, log: String) {
        // Paced, so that as many requests as there may be at once are.
        let settings = Nginx.Settings(hosts: 3, requestsMax: max, rate: "1m")
        return try await Nginx.run(settings) { nginx in
            for file in Self.files {
                try nginx.serve(OriginContent(seed: 1).bytes(0..<file.length), as: file.name, host: file.host)
            }
            return try await withCommand { command in
                let outcome = try await command.run(
                    ["-q", "--max-connections", "6", "-x", "3", "-j", "4", "-s", "3"]
                        + Self.files.map { nginx.url($0.name, host: $0.host) })
                for file in Self.files {
                    let mismatch = OriginContent(seed: 1).firstMismatch(
                        inFileAt: command.path(file.name), length: file.length)
                    #expect(mismatch == nil, "\(file)")
                }
                return (outcome, nginx.accessLog)
            }
        }
    }

    @Test("No more requests are ever under way than the budget allows, neither in all nor to a host")
    func budget() async throws {
        let (outcome, log) = try await self.fetch(allowing: (6, 3))
        #expect(outcome.status == 0, "\(outcome)")
        #expect(!log.contains("\" 503 "), "\(log)")
    }

    @Test("A server that allows one fewer refuses some, and all files come nevertheless", arguments: [(5, 3), (6, 2)])
    func oneFewer(all: Int, host: Int) async throws {
        let (outcome, log) = try await self.fetch(allowing: (all, host))
        #expect(outcome.status == 0, "\(outcome)")
        #expect(log.contains("\" 503 "), "\(log)")
    }

    @Test(
        "Killed in the middle of several files, it goes on with all but a mebibyte a segment", arguments: [1, 4, 10])
    func killed(after mebibytes: Int) async throws {
        // Long enough to have a manifest from the start. Of each response 2 MiB come, and then next to nothing until it was killed.
        let length: Int64 = 12 << 20
        let settings = Nginx.Settings(hosts: 3, requestsMax: (6, 2), rate: "1k", hurried: "2m")
        try await Nginx.run(settings) { nginx in
            for host in 1...3 {
                try nginx.serve(OriginContent(seed: UInt64(host)).bytes(0..<length), as: "f\(host).bin", host: host)
            }
            try await withCommand { command in
                // Nothing is allocated beforehand, so that a part has blocks where something was written and nowhere else.
                let arguments =
                    ["-q", "--max-connections", "6", "-x", "2", "-s", "2", "--file-allocation", "none"]
                    + (1...3).map { nginx.url("f\($0).bin", host: $0) }
                let outcome = try await command.run(arguments) { process in
                    await command.waitForBytes(writtenBy: process, mebibytes << 20)
                    kill(process, SIGKILL)
                }
                #expect(outcome.status == -SIGKILL, "\(outcome)")
                for host in 1...3 where command.exists("f\(host).bin.segdl-part") {
                    let report = try await command.run("status", "--json", "f\(host).bin")
                    let kept = report.events.first?["bytes_done"] as? Int ?? 0
                    let lost = Self.written(command.path("f\(host).bin.segdl-part")) - kept
                    #expect(lost <= 2 << 20, "\(lost) bytes of \(host), \(report)")
                }
                try nginx.hurry()
                let again = try await command.run(arguments)
                #expect(again.status == 0, "\(again)")
                for host in 1...3 {
                    let content = OriginContent(seed: UInt64(host))
                    #expect(content.firstMismatch(inFileAt: command.path("f\(host).bin"), length: length) == nil)
                }
                #expect(!nginx.accessLog.contains("\" 503 "))
            }
        }
    }

    private static func written(_ path: String) -> Int {
        var facts = stat()
        return stat(path, &facts) == 0 ? Int(facts.st_blocks) * 512 : 0
    }
}
