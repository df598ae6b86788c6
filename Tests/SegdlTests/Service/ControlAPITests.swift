import Foundation
import Origin
import TestSupport
import Testing

/// The service's HTTP API, with good and with hostile requests on its socket.
@Suite struct ControlAPITests {
    private static func request(
        _ method: String, _ path: String, type: String = "application/json", _ body: String = ""
    ) -> String {
        """
        \(method) \(path) HTTP/1.1\r
        Host: segdl\r
        Connection: close\r
        Content-Type: \(type)\r
        Content-Length: \(body.utf8.count)\r
        \r
        \(body)
        """
    }

    private static func status(_ answer: String) -> Int? {
        answer.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }

    @Test("A file is added by its URL with options, and events begin after the last one a reader knows")
    func events() async throws {
        try await withCommand { command in
            try await withOrigin { origin in
                _ = try await Service.run(command) { service in
                    let body = """
                        {"downloads": [{"url": "\(origin.url("/1M/a.bin"))",
                          "options": {"dir": "\(command.path("files"))", "out": "b.bin", "segments": 2,
                            "header": ["A: 1", "B: 2"]}}]}
                        """
                    let added = try await service.answer(to: Self.request("POST", "/v1/downloads", body))
                    #expect(Self.status(added) == 201, "\(added)")
                    #expect(try await service.run("wait", "b.bin").status == 0)
                    #expect(service.command.exists("files/b.bin"))
                    // A stream of events of another run of the service.
                    let descriptor = try #require(RawConnection.open(service.socket))
                    let reading = Task {
                        try await aside {
                            RawConnection.answer(
                                to: Array(Self.request("GET", "/v1/events?after=other-1").utf8), on: descriptor)
                        }
                    }
                    _ = try await service.add(origin.url("/1M/c.bin"))
                    #expect(try await service.run("wait", "c.bin").status == 0)
                    _ = try await service.run("stop")
                    let events = try await reading.value
                    close(descriptor)
                    #expect(events.contains("event: lost\n") && events.contains("event: completed\n"), "\(events)")
                    // Chunks may divide lines anywhere, so only whole lines count.
                    let lines = events.split(separator: "\r\n").joined().split(separator: "\n")
                        .filter { $0.hasPrefix("data: {\"") && $0.hasSuffix("}") }.map { String($0.dropFirst(6)) }
                    let schema = try JSONSchema.published()
                    for line in try JSON.lines(lines.joined(separator: "\n")) {
                        #expect(schema.violations(of: line, as: "line").isEmpty, "\(line)")
                    }
                }
            }
        }
    }

    private static let refusals: [(method: String, path: String, type: String, body: String, status: Int)] = [
        ("POST", "/v1/downloads", "text/plain", #"{"downloads": []}"#, 415),
        ("POST", "/v1/downloads", "application/json", #"{"downloads": [{"url": 7}]}"#, 400),
        ("POST", "/v1/downloads", "application/json", #"{"downloads": [{"url": "ftp://x/"}]}"#, 403),
        (
            "POST", "/v1/downloads", "application/json",
            #"{"downloads": [{"url": "http://x/", "options": {"out": "-"}}]}"#, 400
        ),
        (
            "POST", "/v1/downloads", "application/json",
            #"{"downloads": [{"url": "http://x/", "options": {"proxy": "y"}}]}"#, 400
        ),
        ("POST", "/v1/downloads", "application/json", String(repeating: "[", count: 100_000), 400),
        ("POST", "/v1/downloads", "application/json", #"{"downloads": [{"url": "http://x/", "length": -5}]}"#, 400),
        ("POST", "/v1/downloads/pause", "application/json", #"{"all": true, "ids": ["a"]}"#, 400),
        ("POST", "/v1/downloads/move", "application/json", #"{"all": true, "to": 0}"#, 400),
        ("PATCH", "/v1/limits", "application/json", #"{"on-complete": "rm"}"#, 400),
        ("GET", "/v1/history?limit=-1", "application/json", "", 400),
        ("GET", "/v1/downloads?state=other", "application/json", "", 400),
        ("GET", "/v1/downloads/%2e%2e%2f", "application/json", "", 400),
        ("GET", "/v2", "application/json", "", 404),
        ("DELETE", "/v1/downloads", "application/json", "", 404),
    ]

    @Test("Requests that are malformed or not allowed are refused, and change nothing")
    func refused() async throws {
        try await withCommand { command in
            _ = try await Service.run(command) { service in
                for (method, path, type, body, status) in Self.refusals {
                    let answer = try await service.answer(to: Self.request(method, path, type: type, body))
                    #expect(Self.status(answer) == status, "\(method) \(path) \(body.prefix(80)): \(answer)")
                }
                let list = try await service.list()
                #expect(list.isEmpty)
            }
        }
    }

    @Test("An event number that the service never sent counts as a lost one", arguments: [Int.max, 1 << 40])
    func unknownEvent(number: Int) async throws {
        try await withCommand { command in
            _ = try await Service.run(command) { service in
                let state = try await service.answer(to: Self.request("GET", "/v1"))
                let run = try #require(state.firstMatch(of: #/"event":"([0-9a-z]+)-/#)).output.1
                let descriptor = try #require(RawConnection.open(service.socket))
                let request = Self.request("GET", "/v1/events?after=\(run)-\(number)")
                async let events = aside { RawConnection.answer(to: Array(request.utf8), on: descriptor) }
                #expect(try await service.run("list").status == 0)
                _ = try await service.run("stop")
                #expect(try await events.contains("event: lost\n"))
                close(descriptor)
            }
        }
    }

    @Test("A wrong digest is replaced by the one that is given later")
    func checksum() async throws {
        try await withCommand { command in
            try await withOrigin { origin in
                _ = try await Service.run(command) { service in
                    let url = origin.url("/1M/a.bin")
                    let wrong = String(repeating: "0", count: 64)
                    let id = try #require(try await service.add("--checksum", "sha256=\(wrong)", url).first)
                    #expect(try await service.run("wait", id).status == 9)
                    let other = try #require(try await service.add(origin.url("/1M/b.bin")).first)
                    #expect(try await service.run("wait", other).status == 0)
                    let bytes = try Data(contentsOf: URL(fileURLWithPath: command.path("b.bin")))
                    let right = MetalinkCommandTests.digest(Array(bytes))
                    let body = #"{"ids": ["\#(id)"], "options": {"checksum": "sha256=\#(right)"}}"#
                    let changed = try await service.answer(to: Self.request("POST", "/v1/downloads/change", body))
                    #expect(changed.contains(id), "\(changed)")
                    #expect(try await service.run("retry", id).status == 0)
                    #expect(try await service.run("wait", id).status == 0)
                }
            }
        }
    }

    @Test("Connections beyond the limit are closed, and the service answers when they are gone")
    func connections() async throws {
        try await withCommand { command in
            _ = try await Service.run(command) { service in
                let silent = (0..<200).compactMap { _ in RawConnection.open(service.socket) }
                // Half a request.
                for descriptor in silent {
                    _ = "GET /v1 HT".utf8CString.withUnsafeBytes { write(descriptor, $0.baseAddress, 10) }
                }
                for descriptor in silent { close(descriptor) }
                let list = try await service.run("list")
                #expect(list.status == 0, "\(list.errors)")
            }
        }
    }
}
