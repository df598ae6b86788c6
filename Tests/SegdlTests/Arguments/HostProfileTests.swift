import ArgumentParser
import Foundation
import Origin
import SegmentedDownload
import Testing

@testable import segdl

/// Host sections of the configuration file.
@Suite("Host profiles")
struct HostProfileTests {
    /// The request for a file from a host.
    private static func request(
        _ text: String, host: String, line: [String] = [], command: String? = nil, environment: [String: String] = [:]
    ) throws -> DownloadRequest {
        let file = try ConfigurationFile(text, path: "c")
        var layers = try StoredOptions(file, command: command, environment: environment).layers
        layers.line = line.map { text in
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            return FileOption.named(parts[0])!(parts[1])!
        }
        var draft = RequestDraft(request: DownloadRequest(try SourceURL("http://\(host)/f")))
        try layers.apply(to: &draft)
        return draft.finished
    }

    // MARK: Which section

    @Test(
        "A section applies to hosts by name or address, or below a domain; of several the more exact one takes precedence",
        arguments: [
            ("a.example.com", 2), ("b.a.example.com", 3), ("example.com", 4), ("[::1]", 5), ("127.0.0.1", 5),
            ("x.net", 3), ("xexample.org", 1), ("net", 1), ("127.0.0.10", 1), ("example.net.org", 1),
        ])
    func hosts(host: String, retries: Int) throws {
        let text = """
            retry = 1
            [host a.example.com]
            retry = 2
            [host *.example.com *.net]
              retry = 3
            [host *.COM]
            retry = 4
            [host ::1 127.0.0.1]
            retry = 5
            """
        #expect(try Self.request(text, host: host).retries == retries)
    }

    @Test("Of two sections for one host the later one takes precedence")
    func order() throws {
        let text = "[host *.b]\nretry = 1\n[host *.b]\nretry = 2\n"
        #expect(try Self.request(text, host: "a.b").retries == 2)
    }

    @Test(
        "A heading that names no host is refused with its line",
        arguments: [
            "[host]", "[host ]", "[example.com]", "[host a.com", "[host a.com:80]", "[host http://a.com/]", "[host *]",
            "[host a*.com]", "[host *.]", "[host *.*.com]", "[host *.::1]", "[host \u{E9}.com]", "[HOST a.com]",
            "[host a.com] x = 1",
        ])
    func noHost(heading: String) {
        let problem = #expect(throws: ConfigurationFile.Problem.self) {
            try ConfigurationFile("retry = 1\n\(heading)\n", path: "c")
        }
        #expect(problem?.message.hasPrefix("c, line 2: ") == true, "\(String(describing: problem))")
    }

    // MARK: Which options

    @Test("An option of a file can stand in a section, and does the same there as on the command line")
    func options() throws {
        for option in FileOption.all where option.scope == .anywhere {
            let value = Self.values[option.name] ?? "text"
            for name in option.names {
                // A password needs a user.
                let user = option.name == "password" ? "user = n\n" : ""
                let section = try Self.request("[host a.b]\n\(user)\(name) = \(value)\n", host: "a.b")
                let line = (user.isEmpty ? [] : ["user=n"]) + ["\(name)=\(value)"]
                #expect("\(section)" == "\(try Self.request("", host: "a.b", line: line))", "\(name)")
                #expect("\(section)" != "\(try Self.request("", host: "a.b"))", "\(name) does nothing")
            }
        }
    }

    private static let values = [
        "header": "A: b", "cookie": "a=b", "segments": "3", "priority": "0.25", "retry": "0",
        "limit-rate-per-file": "1M/s",
        "min-split-size": "1k", "max-filesize": "1T", "dir": "/", "file-allocation": "none", "remote-time": "true",
        "content-coding": "false", "create-dirs": "false", "on-change": "restart", "if-exists": "skip",
        "continue": "no", "user-info": "a=b",
        "retry-delay": "1", "retry-max-time": "1h", "stall-timeout": "2m", "head-timeout": "3m", "max-time": "250ms",
        "fsync": "end",
        "speed-limit": "10k", "speed-time": "1m",
        "name-template": "{id}", "user": "name:word",
    ]

    @Test(
        "An option of the whole run, or of one file, is refused in a section with the list of those that can stand there",
        arguments: [
            "max-connections = 3", "limit-rate = 1M", "netrc", "proxy = http://a/", "insecure", "quiet", "json",
            "on-complete = x", "checksum = md5=d41d8cd98f00b204e9800998ecf8427e", "output = x", "id = x", "cacert = x",
            "load-cookies = x", "location-trusted", "connect-timeout = 3", "no-such-option = 1",
        ])
    func refused(line: String) {
        let problem = #expect(throws: ConfigurationFile.Problem.self) {
            try ConfigurationFile("[host a.b]\n\n\(line)\n", path: "c")
        }
        let name = line.prefix { $0 != " " }
        #expect(problem?.message.hasPrefix("c, line 3: \(name) cannot stand in a [host] section") == true)
        #expect(problem?.message.contains("limit-rate-per-file") == true)
    }

    @Test(
        "A malformed value is refused with its line, and is not printed",
        arguments: [
            "segments = 0", "retry = x", "header = secret", "header = Range: secret", "cookie = secret",
            "max-time = soon",
            "oauth2-bearer = secret word", "user = ", "dir = ", "if-exists = secret", "remote-time = secret",
            "segments",
            "continue = true", "min-split-size = 0", "user-agent = a\u{1}", "user = secret", "password = secret",
            "user-info = secret",
        ])
    func malformed(line: String) {
        let problem = #expect(throws: ConfigurationFile.Problem.self) {
            try ConfigurationFile("retry = 1\n[host a.b]\n\(line)\n", path: "c")
        }
        // An error of several lines together is reported for the section.
        let isPair = line.hasPrefix("user = s") || line.hasPrefix("password")
        #expect(problem?.message.hasPrefix("c, line \(isPair ? 2 : 3): ") == true, "\(String(describing: problem))")
        #expect(problem?.message.contains("secret") == false)
    }

    // MARK: Precedence

    @Test("A field, credentials and a flag of a section replace those for all files")
    func topics() throws {
        let text = """
            header = X-A: 1
            header = X-B: 1
            user = all:p
            remote-time
            [host a.b]
            header = x-a: 2
            header = x-a: 3
            oauth2-bearer = t
            remote-time = false
            """
        let request = try Self.request(text, host: "a.b")
        #expect(request.fields.map { "\($0.name.rawName): \($0.value)" } == ["X-B: 1", "x-a: 2", "x-a: 3"])
        #expect(request.credentials == .bearer(token: "t") && !request.keepsRemoteTime)
        let line = try Self.request(text, host: "a.b", line: ["user=me:p", "header=X-B: 9"])
        #expect(line.fields.map { "\($0.name.rawName): \($0.value)" } == ["x-a: 2", "x-a: 3", "X-B: 9"])
        #expect(line.credentials == .basic(user: "me", password: "p"))
    }

    @Test("Variables take precedence over the configuration file, and the command line over variables")
    func environment() throws {
        let text = "retry = 1\nmax-time = 1\n[host a.b]\nretry = 2\n"
        let variables = [
            "SEGDL_RETRY": "3", "SEGDL_MAX_TIME": "30", "SEGDL_REMOTE_TIME": "1", "SEGDL_ID": "x", "SEGDL_NOPE": "y",
        ]
        let request = try Self.request(text, host: "a.b", environment: variables)
        #expect(
            request.retries == 3 && request.timeLimit == .seconds(30) && request.keepsRemoteTime && request.id == nil)
        #expect(try Self.request(text, host: "a.b", line: ["retry=4"], environment: variables).retries == 4)
        #expect(
            try Self.request("remote-time\n", host: "a.b", environment: ["SEGDL_NO_REMOTE_TIME": "yes"]).keepsRemoteTime
                == false)
        #expect(try Self.request(text, host: "a.b", environment: ["SEGDL_RETRY": ""]).retries == 2)
        let problem = #expect(throws: ConfigurationFile.Problem.self) {
            try Self.request("", host: "a.b", environment: ["SEGDL_RETRY": "often"])
        }
        #expect(problem?.message.contains("SEGDL_RETRY") == true)
        let run = try StoredOptions(
            nil, command: nil, environment: ["SEGDL_LIMIT_RATE": "1M", "SEGDL_QUIET": "1", "SEGDL_JSON": "no"])
        #expect(run.inserted(into: ["u"]) == ["--limit-rate=1M", "--quiet", "u"])
    }

    @Test("resume does not take its directory from the configuration")
    func placing() throws {
        let text = "dir = y\n[host a.b]\ndir = x\nretry = 1\n"
        let resumed = try Self.request(text, host: "a.b", command: "resume")
        #expect(resumed.retries == 1 && resumed.destination == .directory("."))
        #expect(try Self.request(text, host: "a.b", command: "get").destination == .directory("x"))
    }

    /// Runs with a configuration file that only its owner may read.
    private static func run(
        _ text: String, mode: Int = 0o600, _ body: (Origin, Segdl, [String: String]) async throws -> Void
    ) async throws {
        try await withOrigin(.init(hosts: ["127.0.0.1"])) { origin in
            try await withCommand { command in
                try FileManager.default.createDirectory(
                    atPath: command.path("segdl"), withIntermediateDirectories: true)
                let path = command.path("segdl/config")
                try Data(text.utf8).write(to: URL(fileURLWithPath: path))
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
                try await body(origin, command, ["XDG_CONFIG_HOME": command.directory])
            }
        }
    }

    /// The values of a field in the requests of a path, in their order.
    private static func sent(_ name: String, _ path: String, to origin: Origin) -> [[String]] {
        origin.log.snapshot(path: path).requests.map { request in
            request.headers.filter { $0.name.lowercased() == name }.map(\.value)
        }
    }

    @Test("A section's options apply to its host's files only, and its credentials are not sent to a redirect's target")
    func scope() async throws {
        let text = """
            user-agent = all/1
            [host localhost]
            user = name:word
            cookie = c=1
            header = X-Own: yes
            user-agent = own/1
            dir = own
            segments = 1
            """
        try await Self.run(text) { origin, command, home in
            let target = origin.url("/1k/target.bin")
            let outcome = try await command.run(
                [
                    "-q", origin.url("/1k/own.bin?auth=name:word", host: "localhost"), origin.url("/1k/other.bin"),
                    origin.url("/1k/moved.bin?redirect=302:\(target)", host: "localhost"),
                ], environment: home)
            #expect(outcome.status == 0, "\(outcome)")
            #expect(command.exists("own/own.bin") && command.exists("other.bin") && command.exists("own/moved.bin"))
            for field in ["authorization", "cookie", "x-own"] {
                #expect(Self.sent(field, "/1k/own.bin?auth=name:word", to: origin).allSatisfy { $0.count == 1 })
                #expect(Self.sent(field, "/1k/other.bin", to: origin) == [[]])
                #expect(Self.sent(field, "/1k/target.bin", to: origin) == [[]])
            }
            #expect(Self.sent("user-agent", "/1k/other.bin", to: origin) == [["all/1"]])
            #expect(Self.sent("user-agent", "/1k/own.bin?auth=name:word", to: origin).last == ["own/1"])
        }
    }

    @Test("The command line and a list take precedence over a section")
    func precedence() async throws {
        let text = """
            [host localhost]
            user = name:word
            user-agent = own/1
            header = X-Own: file
            if-exists = overwrite
            """
        try await Self.run(text) { origin, command, home in
            let url = { (name: String) in origin.url("/1k/\(name)", host: "localhost") }
            let line = ["-A", "line/1", "-H", "x-own: line", "--oauth2-bearer", "t"]
            let lines = try await command.run(["-q"] + line + [url("line")], environment: home)
            #expect(lines.status == 0, "\(lines)")
            #expect(Self.sent("user-agent", "/1k/line", to: origin) == [["line/1"]])
            #expect(Self.sent("x-own", "/1k/line", to: origin) == [["line"]])
            #expect(Self.sent("authorization", "/1k/line", to: origin) == [["Bearer t"]])
            let list = "\(url("list"))\n header=X-Own: list\n user-agent=list/1\n"
            try Data(list.utf8).write(to: URL(fileURLWithPath: command.path("list.txt")))
            let lists = try await command.run(["-q", "-i", "list.txt"], environment: home)
            #expect(lists.status == 0, "\(lists)")
            #expect(Self.sent("user-agent", "/1k/list", to: origin) == [["list/1"]])
            #expect(Self.sent("x-own", "/1k/list", to: origin) == [["list"]])
            #expect(Self.sent("authorization", "/1k/list", to: origin) == [["Basic bmFtZTp3b3Jk"]])
            // The file exists. The section would replace it, but the command line does not.
            let replaced = try await command.run(["-q", url("list?seed=2")], environment: home)
            #expect(replaced.status == 0, "\(replaced)")
            let kept = try await command.run(["-q", "--if-exists", "fail", url("list")], environment: home)
            #expect(kept.status == 12, "\(kept)")
            let unread = try await command.run(["-q", "--no-config", url("unread")], environment: home)
            #expect(unread.status == 0 && Self.sent("x-own", "/1k/unread", to: origin) == [[]])
        }
    }

    @Test("The section of a host also applies to resumed downloads and to lists of digests")
    func resume() async throws {
        try await Self.run("[host localhost]\nuser = name\npassword = word\n") { origin, command, home in
            // It is stuck until it is interrupted.
            _ = origin.plainURL("/2M/f.bin?auth=name:word&stall-after=300000:all")
            let url = origin.url("/2M/f.bin", host: "localhost")
            let interrupted = try await command.run(
                ["-q", "--stall-timeout", "1h", "-o", "f.bin", url], signal: SIGINT, afterWriting: 256 << 10,
                environment: home)
            #expect(interrupted.status == 130, "\(interrupted)")
            _ = origin.plainURL("/2M/f.bin?auth=name:word")
            let refused = try await command.run(["resume", "-q", "--no-config", "f.bin"], environment: home)
            // Without the credentials the server may have another file, and it is not even asked.
            #expect(refused.status == 10 && refused.errors.contains("user name"), "\(refused)")
            let resumed = try await command.run(["resume", "-q", "f.bin"], environment: home)
            #expect(resumed.status == 0, "\(resumed)")
            #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 2 << 20) == nil)
            // The server sends the list because the credentials are right. It contains no checksums.
            let list = origin.url("/1k/sums?auth=name:word", host: "localhost")
            let named = try await command.run(["-q", "--checksum-from", list, url], environment: home)
            #expect(named.status == 2 && named.errors.contains("checksums"), "\(named)")
        }
    }

    @Test(
        "Secrets anywhere in a configuration file that others can read are refused, and not printed",
        arguments: [
            "user = name:word", "[host a.b]\nuser = name:word", "[host a.b]\ncookie = word=1",
            "[host a.b]\nheader = Authorization: word", "[host a.b]\noauth2-bearer = word", "proxy-user = n:word",
        ])
    func permissions(text: String) async throws {
        try await Self.run(text, mode: 0o640) { origin, command, home in
            let outcome = try await command.run([origin.url("/1k/f.bin")], environment: home)
            #expect(outcome.status == 11 && outcome.errors.contains("chmod 600"), "\(outcome)")
            #expect(!outcome.errors.contains("word"))
        }
        try await Self.run(text) { origin, command, home in
            let outcome = try await command.run(["-q", origin.url("/1k/f.bin")], environment: home)
            #expect(outcome.status == 0, "\(outcome)")
        }
        try await Self.run("[host a.b]\nuser-agent = word\nheader = Accept: word\n", mode: 0o644) {
            origin, command, home in
            let outcome = try await command.run(["-q", origin.url("/1k/f.bin")], environment: home)
            #expect(outcome.status == 0, "\(outcome)")
        }
    }
}
