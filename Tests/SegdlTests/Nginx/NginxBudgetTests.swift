import Foundation
import Origin
import Testing

/// Many files of several hosts under one budget, counted by nginx. `Benchmarks/many-hosts` does the same at full size.
@Suite(.enabled(if: Nginx.path != nil, "nginx is not installed"))
struct NginxBudgetTests {
    private struct File {
        let name: String
        let host: Int
        let length: Int64
    }

    /// Files of mixed lengths on three hosts.
    private static let files: [File] = (0..<12).map { number in
        let halves = 1 + number * 5 % 12
        return File(name: "f\(number).bin", host: number % 3 + 1, length: Int64(halves) << 19)
    }

    /// Serves the files with nginx's own limits, fetches them with six connections, three per host, and returns the
    /// log.
    private func fetch(allowing max: (all: Int, host: Int)) async throws -> (outcome: Segdl.Outcome, log: String) {
        // Rate-limited, so that the requests use the whole budget.
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

    @Test("Requests never exceed the budget, neither in total nor per host")
    func budget() async throws {
        let (outcome, log) = try await self.fetch(allowing: (6, 3))
        #expect(outcome.status == 0, "\(outcome)")
        #expect(!log.contains("\" 503 "), "\(log)")
    }

    @Test(
        "A server that allows one connection fewer refuses some, and all files complete", arguments: [(5, 3), (6, 2)])
    func oneFewer(all: Int, host: Int) async throws {
        let (outcome, log) = try await self.fetch(allowing: (all, host))
        #expect(outcome.status == 0, "\(outcome)")
        #expect(log.contains("\" 503 "), "\(log)")
    }
}
