import Foundation
import Origin
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import segdl

/// aria2's JSON-RPC and the web page's API over TCP, with the requests of honest clients and of attackers.
@Suite struct RPCTests {
    private static func run(
        _ options: [String] = [], _ body: @escaping @Sendable (RPCClient, Service, Origin) async throws -> Void
    ) async throws {
        try await RPCClient.run(["--web"] + options, body)
    }

    @Test("A file that aria2.addUri adds is fetched, and tellStatus says so")
    func adds() async throws {
        try await Self.run(["--rpc-allow-private"]) { client, service, origin in
            let added = try await client.call(
                "aria2.addUri", [[origin.url("/1M/a.bin")], ["out": "b.bin", "split": "2", "pause": "true"]])
            let gid = try #require(added["result"] as? String, "\(added)")
            func status() async throws -> [String: Any] {
                try #require(try await client.call("aria2.tellStatus", [gid])["result"] as? [String: Any])
            }
            #expect(try await status()["status"] as? String == "paused")
            #expect(try await client.call("aria2.unpause", [gid])["result"] as? String == gid)
            #expect(try await service.run("wait", gid).status == 0)
            let end = try await status()
            #expect(end["status"] as? String == "complete" && end["completedLength"] as? String == "1048576", "\(end)")
            let path = service.command.path("files/b.bin")
            #expect(OriginContent(seed: 1).firstMismatch(inFileAt: path, length: 1 << 20) == nil)
            #expect(try await client.call("aria2.purgeDownloadResult", [])["result"] as? String == "OK")
            #expect(try await client.message("aria2.tellStatus", gid) == "GID \(gid) is not found")
        }
    }

    @Test("Requests of foreign pages, other machines' names and wrong secrets are refused")
    func refused() async throws {
        try await Self.run(["--rpc-allow-origin", "https://good.example", "--rpc-allow-host", "nas.local"]) {
            client, _, _ in
            let body = #"{"jsonrpc":"2.0","id":"1","method":"aria2.getVersion","params":["token:\#(client.secret)"]}"#
            let cases: [(host: String?, fields: [String], type: String?, status: Int)] = [
                (nil, [], "application/json", 200), (nil, [], "application/json-rpc; charset=utf-8", 200),
                // aria2p sends no type. A page cannot hide its origin.
                (nil, [], nil, 200), (nil, ["Origin: http://127.0.0.1:\(client.port)"], nil, 415),
                (nil, [], "text/plain", 415), (nil, [], "application/x-www-form-urlencoded", 415),
                ("evil.example", [], "application/json", 403), ("localhost.evil.example", [], "application/json", 403),
                ("localhost:\(client.port)", [], "application/json", 200), ("NAS.local", [], "application/json", 200),
                ("[::1]:1", [], "application/json", 200),
                (nil, ["Origin: http://evil.example"], "application/json", 403),
                (nil, ["Origin: null"], "application/json", 403),
                (nil, ["Origin: http://127.0.0.1"], "application/json", 403),
                (nil, ["Origin: http://127.0.0.1:\(client.port)"], "application/json", 200),
                (nil, ["Origin: https://good.example"], "application/json", 200),
            ]
            for (host, fields, type, status) in cases {
                let answer = try await client.send("POST", "/jsonrpc", body, host: host, fields: fields, type: type)
                #expect(answer.status == status, "\(host ?? "") \(fields) \(type ?? ""): \(answer.text)")
            }
            #expect(try await client.call("aria2.getVersion", [], secret: "wrong")["result"] == nil)
            // No JSONP, no other answers without the secret.
            let jsonp = try await client.send("GET", "/jsonrpc?method=aria2.getVersion&id=1&params=W10=&jsoncallback=x")
            #expect(jsonp.status == 404)
            #expect(try await client.send("GET", "/v1/downloads").status == 401)
            #expect(try await client.send("GET", "/v1", fields: ["Authorization: Bearer wrong"]).status == 401)
            let open = try await client.send("GET", "/v1", fields: ["Authorization: Bearer \(client.secret)"])
            #expect(open.status == 200 && !open.text.contains("Access-Control"), "\(open.text)")
            let foreign = try await client.send(
                "OPTIONS", "/v1/downloads", fields: ["Origin: https://good.example"])
            #expect(foreign.status == 204 || foreign.status == 404, "\(foreign.text)")
        }
    }

    @Test("Files go only below the allowed directories, whatever the options, names and links are")
    func paths() async throws {
        try await Self.run(["--rpc-allow-private"]) { client, service, origin in
            let command = service.command
            try FileManager.default.createDirectory(
                atPath: command.path("files/real"), withIntermediateDirectories: true)
            symlink("/tmp", command.path("files/link"))
            symlink("real", command.path("files/inner"))
            let url = origin.url("/1M/a.bin")
            for options in [
                ["dir": "/etc"], ["dir": command.path("files/../other")], ["dir": command.path("filesystem")],
                ["dir": command.path("files/link")], ["dir": command.path("files/link/new")],
                ["dir": command.path("files/inner")], ["dir": command.path("files/.hidden")],
                ["out": "../x"], ["out": "/etc/x"], ["out": "link/x"], ["out": ".ssh/x"], ["out": "a\u{0}b"],
            ] {
                let message = try await client.message("aria2.addUri", [url], options)
                #expect(message != nil, "\(options)")
            }
            for option in [
                "on-download-complete", "log", "conf-path", "check-certificate", "all-proxy", "load-cookies",
                "save-session",
                "rpc-secret", "ca-certificate", "input-file",
            ] {
                #expect(try await client.message("aria2.addUri", [url], [option: "/x"]) != nil, "\(option)")
                #expect(try await client.message("aria2.changeGlobalOption", [option: "/x"]) != nil, "\(option)")
            }
            // The form of a request that the command sends is not for clients over TCP.
            let portable = try await client.send(
                "POST", "/v1/downloads", #"{"downloads":[{"request":{"record":{},"secrets":{}}}]}"#,
                fields: ["Authorization: Bearer \(client.secret)"])
            #expect(portable.status == 400 || portable.status == 403, "\(portable.text)")
            #expect(try await service.list().isEmpty)
            let added = try await client.call(
                "aria2.addUri", [[url], ["dir": command.path("files/real"), "out": "-x"]])
            let gid = try #require(added["result"] as? String, "\(added)")
            #expect(try await service.run("wait", gid).status == 0)
            #expect(command.exists("files/real/_x"))
        }
    }

    @Test("A directory that becomes a symbolic link after a client has chosen it is not followed")
    func replacedDirectory() async throws {
        try await Self.run(["--rpc-allow-private"]) { client, service, origin in
            let command = service.command
            for directory in ["files/old", "elsewhere"] {
                try FileManager.default.createDirectory(
                    atPath: command.path(directory), withIntermediateDirectories: true)
            }
            var gids: [String] = []
            for directory in ["old", "new", "third"] {
                let options = ["dir": command.path("files/\(directory)"), "pause": "true"]
                let added = try await client.call("aria2.addUri", [[origin.url("/1M/a.bin")], options])
                gids.append(try #require(added["result"] as? String, "\(added)"))
            }
            // A change by the user that does not touch the directory leaves it to the client.
            let kept = #"{"ids":["\#(gids[0])"],"options":{"if-exists":"rename"}}"#
            let answer = try await service.answer(to: ControlAPITests.request("POST", "/v1/downloads/change", kept))
            #expect(answer.contains(#""changed":["\#(gids[0])"]"#), "\(answer)")
            try FileManager.default.removeItem(atPath: command.path("files/old"))
            for directory in ["old", "new"] { symlink(command.path("elsewhere"), command.path("files/\(directory)")) }
            for gid in gids.prefix(2) {
                _ = try await client.call("aria2.unpause", [gid])
                let waited = try await service.run("wait", gid)
                #expect(waited.status == 11 && waited.errors.contains("symbolic link"), "\(waited.errors)")
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: command.path("elsewhere")).isEmpty)
            // The user may choose any place.
            let body = #"{"ids":["\#(gids[2])"],"options":{"dir":"\#(command.path("elsewhere"))"}}"#
            let changed = try await service.answer(to: ControlAPITests.request("POST", "/v1/downloads/change", body))
            #expect(changed.contains(" 200 "), "\(changed)")
            #expect(try await service.run("resume", gids[2]).status == 0)
            #expect(try await service.run("wait", gids[2]).status == 0)
            #expect(command.exists("elsewhere/a.bin"))
        }
    }

    @Test("A download that is added over TCP does not reach private addresses, one of the user does")
    func privateAddresses() async throws {
        try await Self.run { client, service, origin in
            let url = origin.url("/1M/a.bin")
            let gid = try #require(
                try await client.call("aria2.addUri", [[url], [String: String]()])["result"] as? String)
            let waited = try await service.run("wait", gid)
            #expect(waited.status == 11 && waited.errors.contains("127.0.0.1"), "\(waited.errors)")
            let own = try #require(try await service.add("-d", "own", url).first)
            #expect(try await service.run("wait", own).status == 0)
            // Nor does one of the user once a client has changed it.
            let paused = try #require(
                try await service.add("--paused", "-d", "own", origin.url("/1M/b.bin")).first)
            _ = try await client.call("aria2.changeUri", [paused, 1, [String](), [origin.url("/1M/c.bin")], 0])
            _ = try await client.call("aria2.unpause", [paused])
            #expect(try await service.run("wait", paused).status == 11)
        }
    }

    @Test("The page and its modules are served with a strict policy, and a TCP port needs --rpc-listen")
    func page() async throws {
        try await Self.run { client, _, _ in
            for (path, type) in [("/", "text/html"), ("/app.js", "text/javascript"), ("/page.css", "text/css")] {
                let answer = try await client.send("GET", path)
                #expect(answer.status == 200 && answer.text.contains(type), "\(answer.text.prefix(400))")
                #expect(answer.text.contains("default-src 'none'; script-src 'self'"))
            }
            // Of all modules that others import.
            for file in WebPage.files where file.path.hasSuffix(".js") {
                let text = String(decoding: file.bytes, as: UTF8.self)
                for match in text.matches(of: #/from '\.(/[a-z]+\.js)'/#) {
                    #expect(WebPage.files.contains { $0.path == match.output.1 }, "\(match.output.1)")
                }
            }
        }
        try await withCommand { command in
            for options in [
                ["--web"], ["--rpc-listen", "0.0.0.0:0"], ["--rpc-listen", "example.org:1"],
                ["--rpc-root", "/tmp"], ["--rpc-listen", "127.0.0.1:0", "--rpc-secret", "short"],
            ] {
                let outcome = try await command.run(["daemon"] + options)
                #expect(outcome.status == 2, "\(options): \(outcome.errors)")
            }
        }
    }

    @Test("A secret that is given is used, and one in a file that others can read is refused")
    func secrets() async throws {
        try await withCommand { command in
            let options = [
                "--rpc-listen", "127.0.0.1:0", "--rpc-secret", "a secret of the user", "--rpc-allow-remote",
                "--rpc-root", "a",
            ]
            _ = try await Service.run(command, options) { service in
                let client = RPCClient(port: try #require(service.rpcPort), secret: "a secret of the user")
                #expect(try await client.call("aria2.getVersion", [])["result"] != nil)
                // Not in the process's arguments.
                let arguments = FileManager.default.contents(atPath: "/proc/\(service.process)/cmdline") ?? Data()
                #expect(!String(decoding: arguments, as: UTF8.self).contains("of the user"))
                // Without --web, nothing but the RPC is there.
                #expect(try await client.send("GET", "/").status == 404)
                #expect(!command.exists("state/segdl/rpc-secret"))
            }
            try command.write("0123456789\n", to: "state/segdl/rpc-secret", mode: 0o644)
            let outcome = try await command.run(
                ["daemon", "--rpc-listen", "127.0.0.1:0"],
                environment: ["XDG_STATE_HOME": command.path("state"), "XDG_RUNTIME_DIR": command.path("run")])
            #expect(outcome.status == 15 && outcome.errors.contains("other users have access"), "\(outcome.errors)")
        }
    }

    @Test("No connection to a private address is begun, also not with TLS, and a port that is closed looks the same")
    func noConnection() async throws {
        try await RPCClient.run { client, service, _ in
            let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
            defer { close(listener) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listener, $0, length) == 0 && listen(listener, 8) == 0
                        && getsockname(listener, $0, &length) == 0
                }
            }
            try #require(isBound)
            let port = UInt16(bigEndian: address.sin_port)
            var messages: Set<String> = []
            for url in [
                "https://127.0.0.1:\(port)/a", "http://127.0.0.1:\(port)/a", "https://localhost:\(port)/a",
                "http://127.0.0.1:1/a",
            ] {
                let gid = try #require(try await client.result("aria2.addUri", [url]).text)
                #expect(try await service.run("wait", gid).status == 11)
                let message = try await client.result("aria2.tellStatus", gid)["errorMessage"]?.text ?? ""
                messages.insert(message.replacing("localhost", with: "127.0.0.1"))
            }
            #expect(messages.count == 1, "\(messages)")
            // There was no connection.
            #expect(accept(listener, nil, nil) == -1 && errno == EAGAIN)
        }
    }

    @Test("Clients without the secret have few WebSockets, and each open method is answered once in a message")
    func openClients() async throws {
        try await RPCClient.run { client, _, _ in
            let call = #"{"jsonrpc":"2.0","id":"1","method":"system.listMethods"}"#
            let answers = try #require(try await client.response(to: "[\(call),\(call)]").elements)
            #expect(answers.first?["result"] != nil && answers.last?["error"] != nil)
            let request = """
                GET /jsonrpc HTTP/1.1\r
                Host: 127.0.0.1:\(client.port)\r
                Upgrade: websocket\r
                Connection: Upgrade\r
                Sec-WebSocket-Version: 13\r
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
                \r

                """
            var open: [CInt] = []
            defer { for descriptor in open { close(descriptor) } }
            // One after the other: each is counted once it is answered.
            for _ in 0..<8 {
                let descriptor = try #require(RawConnection.open(port: client.port))
                open.append(descriptor)
                _ = request.withCString { write(descriptor, $0, strlen($0)) }
                let count = try await aside {
                    var byte: UInt8 = 0
                    return recv(descriptor, &byte, 1, 0)
                }
                #expect(count == 1)
            }
            // It ends; the others would wait.
            let ninth = try await RawConnection.answer(to: Array(request.utf8), port: client.port)
            #expect(ninth.hasPrefix("HTTP/1.1 101"), "\(ninth)")
            // Others are served.
            #expect(try await client.result("aria2.getVersion")["version"] != nil)
        }
    }

    @Test("A body over TCP is limited, also without a stated length, and its depth")
    func limitedBody() async throws {
        try await RPCClient.run(["--web"]) { client, _, _ in
            let chunk = String(repeating: " ", count: 1 << 16)
            let chunks = (0..<20).map { _ in "10000\r\n\(chunk)\r\n" }.joined()
            let head = """
                POST /v1/downloads HTTP/1.1\r
                Host: 127.0.0.1:\(client.port)\r
                Authorization: Bearer \(client.secret)\r
                Content-Type: application/json\r
                Transfer-Encoding: chunked\r
                Connection: close\r
                \r

                """
            let long = try await RawConnection.answer(
                to: Array((head + chunks + "0\r\n\r\n").utf8), port: client.port)
            #expect(long.hasPrefix("HTTP/1.1 413"), "\(long.prefix(200))")
            let deep = #"{"downloads":"# + String(repeating: "[", count: 40) + String(repeating: "]", count: 40) + "}"
            let refused = try await client.send(
                "POST", "/v1/downloads", deep, fields: ["Authorization: Bearer \(client.secret)"])
            #expect(refused.status == 400 && refused.text.contains("depth"), "\(refused.text)")
        }
    }

    @Test("Deep, long and incomplete requests end, and the service answers others meanwhile")
    func hostile() async throws {
        try await Self.run { client, _, _ in
            let deep = try await client.send("POST", "/jsonrpc", String(repeating: "[", count: 100_000))
            #expect(deep.text.contains("-32700"), "\(deep.text.suffix(200))")
            let long = try await client.send("POST", "/jsonrpc", String(repeating: " ", count: (1 << 20) + 1))
            #expect(long.status == 413, "\(long.text.prefix(200))")
            // 10,000 connections, 200 at a time: three times as many as are served.
            for _ in 0..<50 {
                let silent = (0..<200).compactMap { _ in RawConnection.open(port: client.port) }
                for descriptor in silent { close(descriptor) }
            }
            let half = try #require(RawConnection.open(port: client.port))
            _ = "POST /jsonrpc HTTP/1.1\r\nContent-Le".withCString { write(half, $0, strlen($0)) }
            // Once the closed ones are gone.
            var status: Int?
            repeat { status = try await client.send("GET", "/").status } while status == nil
            #expect(status == 200)
            // The deadline of a request closes it.
            let rest = try await aside { RawConnection.answer(to: [], on: half) }
            #expect(rest.isEmpty || rest.hasPrefix("HTTP/1.1 4"), "\(rest)")
            close(half)
        }
    }
}

/// Addresses to which downloads of foreign clients do not lead.
@Suite struct SpecialAddressTests {
    @Test(
        "Loopback, private, link-local and other special addresses",
        arguments: [
            "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1%eth0",
            "fc00::1",
            "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:192.168.1.1", "64:ff9b::a00:1", "2002:7f00:1::",
            "2001:db8::1",
            "2001::1", "::127.0.0.1", "no address", "",
        ])
    func special(text: String) { #expect(SpecialAddress.isSpecial(text)) }

    @Test(
        "Public addresses",
        arguments: [
            "8.8.8.8", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "192.169.0.1",
            "2606:2800:220:1::1", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::",
        ])
    func ordinary(text: String) { #expect(!SpecialAddress.isSpecial(text)) }
}
