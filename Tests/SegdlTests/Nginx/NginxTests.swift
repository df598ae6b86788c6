import Foundation
import Origin
import Testing

/// The command with nginx as server.
@Suite(.enabled(if: Nginx.path != nil, "nginx is not installed"))
struct NginxTests {
    static let content = OriginContent(seed: 7).bytes(0..<(48 << 20))

    enum Way: String, CaseIterable, Sendable {
        case plain, tls, moved, ipv6
    }

    @Test(
        "With every protocol and number of segments the file is identical, and the number of connections is exact",
        arguments: Way.allCases, ["1", "4", "8", "auto"])
    func identical(way: Way, segments: String) async throws {
        try await Nginx.run { nginx in
            try nginx.serve(Self.content)
            try await withCommand { command in
                let url =
                    switch way {
                    case .plain: "http://127.0.0.1:\(nginx.port)/file.bin"
                    case .tls: "https://127.0.0.1:\(nginx.portTLS)/file.bin"
                    case .moved: "http://127.0.0.1:\(nginx.port)/moved"
                    case .ipv6: "http://[::1]:\(nginx.port)/file.bin"
                    }
                let outcome = try await command.run(
                    "--json", "-s", segments, "--cacert", nginx.directory + "/ca.pem", "-o", "f.bin", url)
                #expect(outcome.status == 0, "\(outcome)")
                if let count = Int(segments) {
                    #expect(outcome.event("completed")?["connections_peak"] as? Int == count)
                }
                let isSame = FileManager.default.contents(atPath: command.path("f.bin")) == Data(Self.content)
                #expect(isSame)
            }
        }
    }

    @Test("A repeated run gets a 304 from nginx, without a body")
    func again() async throws {
        try await Nginx.run { nginx in
            try nginx.serve(Array(Self.content.prefix(1 << 20)))
            try await withCommand { command in
                let url = "http://127.0.0.1:\(nginx.port)/file.bin"
                let first = try await command.run("-q", "-o", "f.bin", url)
                let second = try await command.run("-q", "-o", "f.bin", url)
                #expect(first.status == 0 && second.status == 0)
                #expect(nginx.accessLog.contains("\" 304 0 "))
            }
        }
    }

    @Test("A file replaced on the server between two runs is detected")
    func replaced() async throws {
        try await Nginx.run { nginx in
            try nginx.serve(Array(Self.content.prefix(1 << 20)))
            try await withCommand { command in
                let url = "http://127.0.0.1:\(nginx.port)/file.bin"
                let first = try await command.run("-q", "-o", "f.bin", url)
                try nginx.serve(Array(Self.content.suffix(2 << 20)))
                let second = try await command.run("-q", "-o", "f.bin", url)
                #expect(first.status == 0 && second.status == 12, "\(second)")
            }
        }
    }
}
