import Foundation
import Origin
import TestSupport
import Testing

/// The service's HTTP API, with good and with hostile requests on its socket.
@Suite struct ControlAPITests {
    static func request(
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
                    let request = Array(Self.request("GET", "/v1/events?after=other-1").utf8)
                    // Later events follow once this one is there.
                    let beginning = try await aside {
                        RawConnection.answer(to: request, on: descriptor, until: "event: lost\n")
                    }
                    _ = try await service.add(origin.url("/1M/c.bin"))
                    #expect(try await service.run("wait", "c.bin").status == 0)
                    _ = try await service.run("stop")
                    let events = beginning + (try await aside { RawConnection.answer(to: [], on: descriptor) })
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

    @Test(
        "A process of another user is not answered, also if the socket and its directory are open to all",
        .enabled(if: getuid() == 0 && Self.python != nil, "needs root, and python3 to become another user"))
    func otherUser() async throws {
        try await withCommand { command in
            _ = try await Service.run(command) { service in
                for path in ["", "run", "run/segdl", "run/segdl/socket"] {
                    #expect(chmod(path.isEmpty ? command.directory : command.path(path), 0o777) == 0)
                }
                // The commands refuse such a directory.
                defer { for path in ["run/segdl", "run"] { chmod(command.path(path), 0o700) } }
                let script = """
                    import os, socket, sys
                    if sys.argv[2] == "other":
                        os.setgroups([]); os.setgid(65534); os.setuid(65534)
                    peer = socket.socket(socket.AF_UNIX); peer.connect(sys.argv[1])
                    try:
                        peer.sendall(b"GET /v1 HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
                        print(peer.recv(12).decode())
                    except ConnectionError:
                        print("closed")
                    """
                for (user, answer) in [("own", ["HTTP/1.1 200"]), ("other", ["closed", ""])] {
                    let outcome = try await Child.run(
                        [Self.python ?? "python3", "-c", script, service.socket, user], in: command.directory,
                        log: command.path("python"), environment: [:], deadline: .seconds(60))
                    #expect(outcome.status == 0, "\(outcome)")
                    let text = outcome.output.filter { $0 != "\n" }
                    #expect(answer.contains(text), "\(user): \(outcome)")
                }
            }
        }
    }

    private static let python = ["/usr/bin/python3", "/usr/local/bin/python3", "/root/.pyenv/shims/python3"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    @Test("Half a request and then silence ends with the request's deadline")
    func half() async throws {
        try await withCommand { command in
            _ = try await Service.run(command) { service in
                let answer = try await service.answer(to: "POST /v1/downloads HTTP/1.1\r\nHost: x\r\nContent-Le")
                #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4"), "\(answer)")
                #expect(try await service.run("list").status == 0)
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
