import ArgumentParser
import Foundation
import Origin
import SegmentedDownload
import Testing

@testable import segdl

/// What the configuration file says of hosts.
@Suite("Host profiles")
struct HostProfileTests {
    /// The command's arguments for a host, without the URL.
    private static func arguments(
        _ text: String, host: String, _ line: [String] = [], said: Set<String> = [], command: String? = nil
    ) throws -> [String]? {
        let file = try ConfigurationFile(text, path: "c")
        return LayeredArguments(file, command: command, line: line).arguments(for: host, besides: said)
    }

    // MARK: Which section

    @Test(
        "A section is about hosts by name or address, or below a domain; of several the one that names it more exactly has the last word"
    )
    func hosts() throws {
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
        #expect(
            try Self.arguments(text, host: "a.example.com") == ["--retry=1", "--retry=4", "--retry=3", "--retry=2"])
        #expect(try Self.arguments(text, host: "b.a.example.com") == ["--retry=1", "--retry=4", "--retry=3"])
        #expect(try Self.arguments(text, host: "example.com") == ["--retry=1", "--retry=4"])
        #expect(try Self.arguments(text, host: "[::1]") == ["--retry=1", "--retry=5"])
        #expect(try Self.arguments(text, host: "x.net", ["-q"]) == ["--retry=1", "--retry=3", "-q"])
        for host in ["xexample.org", "com", "net", "127.0.0.10", "example.net.org"] {
            #expect(try Self.arguments(text, host: host) == nil, "\(host)")
        }
    }

    @Test("Of two sections about one host the later one has the last word")
    func order() throws {
        let text = "[host *.b]\nretry = 1\n[host *.b]\nretry = 2\n"
        #expect(try Self.arguments(text, host: "a.b") == ["--retry=1", "--retry=2"])
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

    // MARK: What may be said

    @Test("What may be said of a host is an option of the command, and one of a file", arguments: HostOption.allCases)
    func options(option: HostOption) throws {
        let values: [HostOption: String?] = [
            .header: "A: b", .cookie: "a=b", .segments: "3", .split: "3", .priority: "0.25", .retry: "0", .tries: "1",
            .limitRatePerFile: "1M/s", .maxDownloadLimit: "0", .minSplitSize: "1k", .maxFilesize: "1T", .dir: "/",
            .fileAllocation: "none", .remoteTime: String?.none, .noCreateDirs: "true", .onChange: "restart",
            .ifExists: "skip", .continuation: "no", .userInfo: "a=b", .retryDelay: "1", .retryWait: "1s",
            .waitretry: "2",
            .retryMaxTime: "1h", .stallTimeout: "2m", .maxTime: "250ms",
        ]
        let value = values[option] ?? "text"
        #expect(option.expectation(unmetBy: value) == nil)
        let setting = Setting(line: 1, name: option.rawValue, value: .init(value, isFlag: option.isFlag))
        // A password goes with a user, and the other way round.
        let others = ["password": ["--user=n"], "http-password": ["--user=n"], "http-passwd": ["--user=n"]]
        let command = try GetCommand.parse(setting.arguments + (others[option.rawValue] ?? []) + ["http://localhost/"])
        let plain = try GetCommand.parse(["http://localhost/"])
        // Whatever it does is done to a request.
        #expect("\(command.fetch.network)" == "\(plain.fetch.network)")
        #expect("\(command.fetch.output)" == "\(plain.fetch.output)")
        #expect("\(command)" != "\(plain)")
    }

    @Test(
        "What is about all files, or about one, cannot be said of a host, and what can is listed",
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
        #expect(problem?.message.hasPrefix("c, line 3: \(name) cannot be said of a host") == true)
        #expect(problem?.message.contains("limit-rate-per-file") == true)
    }

    @Test(
        "A value that is none is refused with its line, without being shown",
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
        // What lines have wrong together is told of the section.
        let isPair = line.hasPrefix("user = s") || line.hasPrefix("password")
        #expect(problem?.message.hasPrefix("c, line \(isPair ? 2 : 3): ") == true, "\(String(describing: problem))")
        #expect(problem?.message.contains("secret") == false)
    }

    // MARK: Who has the last word

    @Test("A field, who the user is and a flag are replaced by what is said of them more exactly, not added to")
    func topics() throws {
        let text = """
            header = X-A: 1
            header = X-B: 1
            user = all:p
            remote-time
            [host a.b]
            header = x-a: 2
            oauth2-bearer = t
            remote-time = false
            """
        let all = ["--header=X-B: 1", "--header=x-a: 2", "--oauth2-bearer=t"]
        #expect(try Self.arguments(text, host: "a.b") == all)
        #expect(try Self.arguments(text, host: "a.b", said: ["authorization", "x-b"]) == ["--header=x-a: 2"])
    }

    @Test("What resume knows itself is not said of its hosts either")
    func placing() throws {
        let text = "[host a.b]\ndir = x\nretry = 1\n"
        #expect(
            try Self.arguments(text, host: "a.b", ["--all"], command: "resume") == ["resume", "--retry=1", "--all"])
        #expect(try Self.arguments(text, host: "a.b", command: "get") == ["get", "--dir=x", "--retry=1"])
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

    @Test("What is said of a host is done for its files and no others, and sent to it and nobody a redirect leads to")
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

    @Test("The command line and a list have the last word over what is said of a host")
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
            // The file is there: what the section says lets it be replaced, the command line does not.
            let replaced = try await command.run(["-q", url("list?seed=2")], environment: home)
            #expect(replaced.status == 0, "\(replaced)")
            let kept = try await command.run(["-q", "--if-exists", "fail", url("list")], environment: home)
            #expect(kept.status == 12, "\(kept)")
            let unread = try await command.run(["-q", "--no-config", url("unread")], environment: home)
            #expect(unread.status == 0 && Self.sent("x-own", "/1k/unread", to: origin) == [[]])
        }
    }

    @Test("An interrupted download is gone on with, and a list of digests read, as the host of its source has it")
    func resume() async throws {
        try await Self.run("[host localhost]\nuser = name\npassword = word\n") { origin, command, home in
            let url = origin.url("/2M/f.bin?auth=name:word&rate=1M", host: "localhost")
            let interrupted = try await command.run(["-q", "-o", "f.bin", url], environment: home) { process in
                await command.waitForBytes(writtenBy: process, 64 << 10)
                kill(process, SIGINT)
            }
            #expect(interrupted.status == 130, "\(interrupted)")
            let refused = try await command.run(["resume", "-q", "--no-config", "f.bin"], environment: home)
            #expect(refused.status == 6, "\(refused)")
            let resumed = try await command.run(["resume", "-q", "f.bin"], environment: home)
            #expect(resumed.status == 0, "\(resumed)")
            #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 2 << 20) == nil)
            // The list is no list, but it is let out.
            let list = origin.url("/1k/sums?auth=name:word", host: "localhost")
            let named = try await command.run(["-q", "--checksum-from", list, url], environment: home)
            #expect(named.status == 2 && named.errors.contains("checksums"), "\(named)")
        }
    }

    @Test(
        "Secrets in a configuration file that others may read are refused, wherever they stand, and not shown",
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
