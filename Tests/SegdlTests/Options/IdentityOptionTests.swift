import Foundation
import Origin
import Testing

/// Options for header fields and credentials, with the real command.
@Suite("Options: requests and credentials")
struct IdentityOptionTests {
    /// The arguments, and the field that a server receives.
    static let told: [(option: [String], field: String, value: String)] = [
        (["-H", "X-One: 1"], "x-one", "1"), (["--header", "X-One: 1"], "x-one", "1"),
        (["-A", "me/1"], "user-agent", "me/1"), (["--user-agent", "me/1"], "user-agent", "me/1"),
        (["-e", "http://r.test/"], "referer", "http://r.test/"),
        (["--referer", "http://r.test/"], "referer", "http://r.test/"),
        (["-b", "a=1", "-b", "b=2"], "cookie", "a=1; b=2"), (["--cookie", "a=1"], "cookie", "a=1"),
        (["--oauth2-bearer", "token"], "authorization", "Bearer token"),
        // user:pa:ss, encoded by base64 of coreutils.
        (["-u", "user:pa:ss"], "authorization", "Basic dXNlcjpwYTpzcw=="),
        (["--user", "user", "--password", "pa:ss"], "authorization", "Basic dXNlcjpwYTpzcw=="),
        (["--http-user", "user", "--http-password", "pa:ss"], "authorization", "Basic dXNlcjpwYTpzcw=="),
        (["--http-user", "user", "--http-passwd", "pa:ss"], "authorization", "Basic dXNlcjpwYTpzcw=="),
    ]

    @Test(
        "Fields are sent to the URL's server; other servers get the User-Agent only, unless redirects are trusted",
        arguments: Self.told)
    func fields(option: [String], field: String, value: String) async throws {
        try await withOptionScene { origin, command in
            try await withOrigin { other in
                let url = origin.url("/1M/f.bin?redirect=302:" + other.url("/1M/f.bin"))
                for (trust, isTold) in [([], field == "user-agent"), (["--location-trusted"], true)] {
                    other.reset()
                    let outcome = try await command.run(
                        ["-q", "-s", "2", "--if-exists", "overwrite"] + option + trust + [url])
                    #expect(outcome.status == 0 && command.holds("f.bin", 1 << 20), "\(outcome)")
                    #expect(other.values(of: field).contains(value) == isTold, "\(other.values(of: field))")
                }
                let told = origin.values(of: field)
                #expect(!told.isEmpty && told.allSatisfy { $0 == value }, "\(told)")
            }
        }
    }

    @Test("probe and bench send the same fields", arguments: ["probe", "bench"])
    func others(subcommand: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                subcommand, "-H", "X-One: 1", "-A", "me/1", "-u", "user:pa:ss", origin.url("/64k/f.bin?auth=user:pa:ss")
            )
            #expect(outcome.status == 0, "\(outcome)")
            let requests = origin.log.snapshot().requests
            #expect(!requests.isEmpty && requests.allSatisfy { $0["x-one"] == "1" && $0["user-agent"] == "me/1" })
        }
    }

    @Test(
        "Names and passwords are read from ~/.netrc or another file",
        arguments: [["--netrc"], ["--netrc-optional"], ["--netrc-file", "n"]])
    func netrc(option: [String]) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/64k/f.bin?auth=user:word")
            let environment = ["HOME": command.directory]
            for name in [".netrc", "n"] {
                try command.write("machine 127.0.0.1 login user password word\n", to: name, mode: 0o600)
            }
            let refused = try await command.run(["-q", "-o", "f.bin", url], environment: environment)
            #expect(refused.status == 6, "\(refused)")
            let outcome = try await command.run(["-q", "-o", "f.bin"] + option + [url], environment: environment)
            #expect(outcome.status == 0 && command.holds("f.bin", 64 << 10), "\(outcome)")
        }
    }

    @Test("Cookies of a file are sent to their host", arguments: ["-b", "--cookie", "--load-cookies"])
    func cookies(option: String) async throws {
        try await withOptionScene { origin, command in
            let lines = ["127.0.0.1", "other.test"].map { "\($0)\tFALSE\t/\tFALSE\t0\tof\t\($0)\n" }
            try command.write(lines.joined(), to: "jar")
            let outcome = try await command.run("-q", option, "jar", origin.url("/64k/f.bin"))
            #expect(outcome.status == 0 && origin.values(of: "cookie") == ["of=127.0.0.1"], "\(outcome)")
        }
    }
}
