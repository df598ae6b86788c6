import Foundation
import Origin
import Testing

/// Several nginx with equal or different files. `Benchmarks/mirrors` does the same at full size.
@Suite(.enabled(if: Nginx.path != nil, "nginx is not installed"))
struct NginxMirrorTests {
    private static let content = OriginContent(seed: 7).bytes(0..<(12 << 20))

    /// Files of equal length and date have equal tags, with any content.
    private static func serve(_ nginx: Nginx, _ contents: [[UInt8]]) throws {
        for (index, content) in contents.enumerated() {
            try nginx.serve(content, host: index + 1)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)],
                ofItemAtPath: nginx.path(host: index + 1))
        }
    }

    private static func arguments(_ nginx: Nginx, hosts: Int) -> [String] {
        ["--json", "-o", "f.bin", nginx.url()] + (2...hosts).flatMap { ["--mirror", nginx.url(host: $0)] }
    }

    private static func holds(_ command: Segdl, _ content: [UInt8]) -> Bool {
        FileManager.default.contents(atPath: command.path("f.bin")) == Data(content)
    }

    @Test(
        "Two files with equal length and tag are never mixed",
        arguments: [true, false], ["1", "2", "4", "16", "auto"])
    func twoFiles(hasTags: Bool, segments: String) async throws {
        try await Nginx.run(Nginx.Settings(hosts: 2, hasTags: hasTags)) { nginx in
            try Self.serve(nginx, [Self.content, OriginContent(seed: 8).bytes(0..<(12 << 20))])
            try await withCommand { command in
                let outcome = try await command.run(["-s", segments] + Self.arguments(nginx, hosts: 2))
                #expect(outcome.status == 0 && Self.holds(command, Self.content), "\(outcome)")
            }
        }
    }

    @Test("Of three mirrors the one that flips bits everywhere is found without a digest", arguments: [1, 2, 3])
    func flipsEverywhere(at host: Int) async throws {
        // Rate-limited, so that there are some seconds to compare with the others before one mirror has delivered
        // everything.
        try await Nginx.run(Nginx.Settings(hosts: 3, rate: "512k")) { nginx in
            var bad = Self.content
            for offset in stride(from: 1000, to: bad.count, by: 4096) { bad[offset] ^= 4 }
            try Self.serve(nginx, (1...3).map { $0 == host ? bad : Self.content })
            try await withCommand { command in
                let outcome = try await command.run(["-s", "4"] + Self.arguments(nginx, hosts: 3))
                #expect(outcome.status == 0 && Self.holds(command, Self.content), "\(outcome)")
                let notes = outcome.events.compactMap { $0["message"] as? String }
                #expect(notes.contains { $0.hasPrefix("127.0.0.\(host):\(nginx.port) has other bytes") }, "\(outcome)")
            }
        }
    }

    @Test(
        "With a digest the file is right wherever one of three mirrors flips a bit",
        arguments: [1, 2, 3], [0, 5_000_000, (12 << 20) - 1])
    func flipsOnce(at host: Int, offset: Int) async throws {
        try await Nginx.run(Nginx.Settings(hosts: 3)) { nginx in
            var bad = Self.content
            bad[offset] ^= 1
            try Self.serve(nginx, (1...3).map { $0 == host ? bad : Self.content })
            try await withCommand { command in
                let plain = try await command.run("--json", "-o", "plain.bin", nginx.url(host: host == 1 ? 2 : 1))
                let crc = try #require(plain.event("completed")?["crc32"] as? String)
                let outcome = try await command.run(
                    ["-s", "4", "--checksum", "crc32=\(crc)"] + Self.arguments(nginx, hosts: 3))
                #expect(outcome.status == 0 && Self.holds(command, Self.content), "\(outcome)")
            }
        }
    }

    @Test("A mirror that is stopped midway is replaced by the other", arguments: [1, 2])
    func stopped(host: Int) async throws {
        let settings = Nginx.Settings(rate: "2m")
        try await Nginx.run(settings) { first in
            try await Nginx.run(settings) { second in
                try Self.serve(first, [Self.content])
                try Self.serve(second, [Self.content])
                try await withCommand { command in
                    let arguments = ["--json", "-s", "4", "-o", "f.bin", first.url(), "--mirror", second.url()]
                    let outcome = try await command.run(arguments) { process in
                        await command.waitForBytes(writtenBy: process, 4 << 20)
                        (host == 1 ? first : second).stop()
                    }
                    #expect(outcome.status == 0 && Self.holds(command, Self.content), "\(outcome)")
                }
            }
        }
    }
}
