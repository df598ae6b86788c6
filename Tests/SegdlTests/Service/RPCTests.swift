import Foundation
import Origin
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import segdl

/// aria2's JSON-RPC and the web page's API over TCP, with the requests of honest clients and of attackers.
@Suite struct RPCTests {
    /// A client of the service.
    private struct Client: Sendable {
        let service: Service
        let port: Int
        let secret: String

        /// The answer to an HTTP request.
        func send(
            _ method: String, _ path: String, _ body: String = "", host: String? = nil, fields: [String] = [],
            type: String? = "application/json"
        ) async throws -> (status: Int?, text: String) {
            let own = [
                "Host: \(host ?? "127.0.0.1:\(self.port)")", "Connection: close", "Content-Length: \(body.utf8.count)",
            ]
            let lines = ["\(method) \(path) HTTP/1.1"] + own + (type.map { ["Content-Type: \($0)"] } ?? []) + fields
            let text = try await RawConnection.answer(
                to: Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8), port: self.port)
            return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) }, text)
        }

        /// The `result` or the `error` of a call.
        func call(_ method: String, _ parameters: [Any], secret: String? = nil) async throws -> [String: Any] {
            let call: [String: Any] = [
                "jsonrpc": "2.0", "id": "1", "method": method,
                "params": ["token:\(secret ?? self.secret)"] + parameters,
            ]
            let body = String(decoding: try JSONSerialization.data(withJSONObject: call), as: UTF8.self)
            let text = try await self.send("POST", "/jsonrpc", body).text
            let json = text.split(separator: "\r\n\r\n", maxSplits: 1).last.map { Data($0.utf8) } ?? Data()
            return try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any], "\(text)")
        }

        func message(_ method: String, _ parameters: Any...) async throws -> String? {
            (try await self.call(method, parameters)["error"] as? [String: Any])?["message"] as? String
        }
    }

    private static func run(
        _ options: [String] = [], _ body: @escaping @Sendable (Client, Origin) async throws -> Void
    ) async throws {
        try await withCommand { command in
            try await withOrigin { origin in
                let all = ["-d", command.path("files"), "--rpc-listen", "127.0.0.1:0", "--web"] + options
                let ending = try await Service.run(command, all) { service in
                    let text = FileManager.default.contents(atPath: command.path("state/segdl/rpc-secret")) ?? Data()
                    let port = try #require(service.rpcPort)
                    try await body(
                        Client(
                            service: service, port: port,
                            secret: String(decoding: text, as: UTF8.self).filter { !$0.isWhitespace }), origin)
                }
                #expect(ending.status == 0, "\(ending.errors)")
            }
        }
    }

    @Test("A file that aria2.addUri adds is fetched, and tellStatus says so")
    func adds() async throws {
        try await Self.run(["--rpc-allow-private"]) { client, origin in
            let added = try await client.call(
                "aria2.addUri", [[origin.url("/1M/a.bin")], ["out": "b.bin", "split": "2", "pause": "true"]])
            let gid = try #require(added["result"] as? String, "\(added)")
            func status() async throws -> [String: Any] {
                try #require(try await client.call("aria2.tellStatus", [gid])["result"] as? [String: Any])
            }
            #expect(try await status()["status"] as? String == "paused")
            #expect(try await client.call("aria2.unpause", [gid])["result"] as? String == gid)
            #expect(try await client.service.run("wait", gid).status == 0)
            let end = try await status()
            #expect(end["status"] as? String == "complete" && end["completedLength"] as? String == "1048576", "\(end)")
            let path = client.service.command.path("files/b.bin")
            #expect(OriginContent(seed: 1).firstMismatch(inFileAt: path, length: 1 << 20) == nil)
            #expect(try await client.call("aria2.purgeDownloadResult", [])["result"] as? String == "OK")
            #expect(try await client.message("aria2.tellStatus", gid) == "GID \(gid) is not found")
        }
    }

    @Test("Requests of foreign pages, other machines' names and wrong secrets are refused")
    func refused() async throws {
        try await Self.run(["--rpc-allow-origin", "https://good.example", "--rpc-allow-host", "nas.local"]) {
            client, _ in
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
        try await Self.run(["--rpc-allow-private"]) { client, origin in
            let command = client.service.command
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
            #expect(try await client.service.list().isEmpty)
            let added = try await client.call(
                "aria2.addUri", [[url], ["dir": command.path("files/real"), "out": "-x"]])
            let gid = try #require(added["result"] as? String, "\(added)")
            #expect(try await client.service.run("wait", gid).status == 0)
            #expect(command.exists("files/real/_x"))
        }
    }

    @Test("A download that is added over TCP does not reach private addresses, one of the user does")
    func privateAddresses() async throws {
        try await Self.run { client, origin in
            let url = origin.url("/1M/a.bin")
            let gid = try #require(
                try await client.call("aria2.addUri", [[url], [String: String]()])["result"] as? String)
            let waited = try await client.service.run("wait", gid)
            #expect(waited.status == 11 && waited.errors.contains("127.0.0.1"), "\(waited.errors)")
            let own = try #require(try await client.service.add("-d", "own", url).first)
            #expect(try await client.service.run("wait", own).status == 0)
            // Nor does one of the user once a client has changed it.
            let paused = try #require(
                try await client.service.add("--paused", "-d", "own", origin.url("/1M/b.bin")).first)
            _ = try await client.call("aria2.changeUri", [paused, 1, [String](), [origin.url("/1M/c.bin")], 0])
            _ = try await client.call("aria2.unpause", [paused])
            #expect(try await client.service.run("wait", paused).status == 11)
        }
    }

    @Test("The page and its modules are served with a strict policy, and a TCP port needs --rpc-listen")
    func page() async throws {
        try await Self.run { client, _ in
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
                let client = Client(
                    service: service, port: try #require(service.rpcPort), secret: "a secret of the user")
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

    @Test("Deep, long and incomplete requests end, and the service answers others meanwhile")
    func hostile() async throws {
        try await Self.run { client, _ in
            let deep = try await client.send("POST", "/jsonrpc", String(repeating: "[", count: 100_000))
            #expect(deep.text.contains("-32700"), "\(deep.text.suffix(200))")
            let long = try await client.send("POST", "/jsonrpc", String(repeating: " ", count: (1 << 20) + 1))
            #expect(long.status == 413, "\(long.text.prefix(200))")
            let silent = (0..<200).compactMap { _ in RawConnection.open(port: client.port) }
            for descriptor in silent { close(descriptor) }
            let half = try #require(RawConnection.open(port: client.port))
            _ = "POST /jsonrpc HTTP/1.1\r\nContent-Le".withCString { write(half, $0, 35) }
            // Once the closed ones are gone.
            var status: Int?
            repeat { status = try await client.send("GET", "/").status } while status == nil
            #expect(status == 200)
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
