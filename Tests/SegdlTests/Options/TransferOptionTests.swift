import Foundation
import Origin
import Testing

/// Options for transfers, with the real command.
@Suite("Options: transfer")
struct TransferOptionTests {
    @Test(
        "The number of segments is the number of connections",
        arguments: [["-s", "3"], ["-s3"], ["--segments", "3"], ["--split", "3"], ["--split=3"]])
    func segments(option: [String]) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(["--json"] + option + [origin.url("/6M/f.bin?rate=4M")])
            #expect(outcome.status == 0 && command.holds("f.bin", 6 << 20), "\(outcome)")
            #expect(outcome.event("completed")?["connections_peak"] as? Int == 3)
        }
    }

    @Test("No segment is smaller than the minimum, for any number of segments")
    func splitSize() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/8M/f.bin?rate=8M")
            let outcome = try await command.run("--json", "-s", "8", "--min-split-size", "4M", url)
            #expect(outcome.status == 0 && command.holds("f.bin", 8 << 20), "\(outcome)")
            let opened = outcome.events.filter { $0["state"] as? String == "opened" }
            #expect(Set(opened.compactMap { $0["start"] as? Int }) == [0, 4 << 20], "\(outcome)")
            #expect(outcome.event("completed")?["connections_peak"] as? Int == 2)
        }
    }

    @Test(
        "Mirrors that a server states together with the file's digest are used with --linked-mirrors only",
        arguments: [(["--linked-mirrors"], true), ([], false)])
    func linkedMirrors(option: [String], isUsed: Bool) async throws {
        try await withOptionScene { origin, command in
            let known = try await command.run(["-q", "-o", "known", origin.url("/4M/f.bin")])
            let hex = Array(try await command.run([], shell: "sha256sum known").output.prefix(64))
            #expect(known.status == 0 && hex.count == 64)
            let bytes = stride(from: 0, to: hex.count, by: 2).compactMap {
                UInt8(String(hex[$0...($0 + 1)]), radix: 16)
            }
            let base64 = Data(bytes).base64EncodedString()
            let digest = base64.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            let link = "%3C/4M/mirror.bin%3E%3B%20rel%3Dduplicate"
            // Every request after the probe of --linked-mirrors and the download's first request fails.
            let url = origin.url(
                "/4M/f.bin?close-after=1M:2&fail=404:all:\(isUsed ? 2 : 1)&field=Digest:SHA-256%3D\(digest)&field=Link:\(link)"
            )
            let outcome = try await command.run(["-s", "1"] + option + [url])
            #expect(outcome.status == (isUsed ? 0 : 8), "\(outcome)")
            #expect(command.holds("f.bin", 4 << 20) == isUsed)
        }
    }

    @Test(
        "A download starts with the stored number of connections, unless --no-remember is given",
        arguments: [("--remember", true), ("--no-remember", false)])
    func memory(option: String, isUsed: Bool) async throws {
        try await withOptionScene { origin, command in
            // A name, because addresses of this machine are not stored.
            let server = "server.test:\(origin.port)"
            try FileManager.default.createDirectory(
                atPath: command.path("cache/segdl"), withIntermediateDirectories: true)
            let now = Int(Date().timeIntervalSince1970)
            try command.write(
                #"{"http://\#(server)":{"connections":5,"time":\#(now)}}"#, to: "cache/segdl/servers.json")
            let outcome = try await command.run(
                [
                    "--json", option, "--resolve", "\(server):127.0.0.1", "-o", "f.bin",
                    "http://\(server)/16M/f.bin?rate=16M",
                ], environment: ["XDG_CACHE_HOME": command.path("cache")])
            #expect(outcome.status == 0 && command.holds("f.bin", 16 << 20), "\(outcome)")
            // The first request is for its share of the file. Without a stored number it depends on how soon the server
            // answers, but is never a fifth.
            let first = try #require(outcome.events.first { $0["event"] as? String == "segment" })
            #expect((first["end"] as? Int == (16 << 20) / 5) == isUsed, "\(first)")
        }
    }

    @Test(
        "Space is reserved before bytes are written, or not, as the option says",
        arguments: [("auto", true), ("falloc", true), ("trunc", false), ("none", false)])
    func allocation(how: String, isReserved: Bool) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/64M/f.bin?stall-after=1M:all")
            let outcome = try await command.interrupted(["-s", "1", "--file-allocation", how, "-o", "f.bin", url])
            #expect(outcome.status == 130, "\(outcome)")
            var status = stat()
            #expect(stat(command.path("f.bin.segdl-part"), &status) == 0 && status.st_size == 64 << 20)
            // In units of 512 bytes on every file system.
            let reserved = Int64(status.st_blocks) * 512
            #expect((reserved >= 64 << 20) == isReserved && (isReserved || reserved < 8 << 20), "\(reserved)")
        }
    }

    /// The digests of the origin's first 64 KiB, computed by coreutils and zlib.
    private static let digests = [
        "crc32=7173879a", "md5=3aec546183c05a6628f80468d62e27ac", "sha1=c8f0f5a1558da90d0f3a49811d798780546ec7e6",
        "sha256=1ebd584fa2a31942b2dfbbda3f53aa00f0e7abe48e88e96c200f0d57845e61a7",
        "sha512=0fbe24b522eec78e26b1d7581a09d947cb2a3fefe2edd2f89919581440244d117570236b456d68b43ea760cebe3bda0f"
            + "acc25c589ae122334fffad8ea2907433",
    ]

    @Test("A file matches every given digest, or its final name does not appear", arguments: Self.digests)
    func checksum(digest: String) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/64k/f.bin")
            let good = try await command.run(
                "--json", "--checksum", Self.digests[0], "--checksum", digest, "-o", "good.bin", url)
            #expect(good.status == 0 && command.holds("good.bin", 64 << 10), "\(good)")
            #expect(good.event("completed")?["verified_by"] as? String == "digest")
            let wrong = digest.dropLast() + (digest.hasSuffix("0") ? "1" : "0")
            let bad = try await command.run(
                "-q", "--checksum", Self.digests[0], "--checksum", String(wrong), "-o", "bad.bin", url)
            #expect(bad.status == 9 && !command.exists("bad.bin"), "\(bad)")
        }
    }

    @Test("A file longer than the limit is refused, and one of exactly that length is fetched")
    func filesize() async throws {
        try await withOptionScene { origin, command in
            let long = try await command.run("-q", "--max-filesize", "65535", origin.url("/64k/f.bin"))
            #expect(long.status == 13 && !command.exists("f.bin"), "\(long)")
            #expect(origin.log.snapshot().bytesSent <= 64 << 10)
            let fitting = try await command.run("-q", "--max-filesize", "64k", origin.url("/64k/f.bin"))
            #expect(fitting.status == 0 && command.holds("f.bin", 64 << 10), "\(fitting)")
        }
    }

    @Test("With --no-content-coding a file that the server encodes is refused, and stored otherwise")
    func contentCoding() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/64k/f.bin?encoding=gzip")
            let refused = try await command.run("-q", "--no-content-coding", url)
            #expect(refused.status == 7 && !command.exists("f.bin"), "\(refused)")
            #expect(refused.errors.contains("segdl --content-coding URL"), "\(refused)")
            let stored = try await command.run("-q", "--content-coding", url)
            #expect(stored.status == 0 && command.holds("f.bin", 64 << 10), "\(stored)")
            // A file that was stored so before is not the decoded one.
            #expect(try await command.run("-q", "--no-content-coding", url).status == 7)
        }
    }

    @Test(
        "A file has the server's date with --remote-time, and today's otherwise", arguments: ["-R", "--remote-time"])
    func remoteTime(option: String) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/64k/f.bin?last-modified=1600000000")
            for (arguments, isOld) in [([option], true), ([], false), ([option, "--no-remote-time"], false)] {
                let outcome = try await command.run(
                    ["-q", "--if-exists", "overwrite", "-o", "f.bin"] + arguments + [url])
                #expect(outcome.status == 0, "\(outcome)")
                var status = stat()
                #expect(stat(command.path("f.bin"), &status) == 0)
                #expect((status.st_mtim.tv_sec == 1_600_000_000) == isOld)
            }
        }
    }

    @Test(
        "A changed remote file is an error or makes the download start over", arguments: [("fail", 10), ("restart", 0)])
    func change(how: String, status: Int32) async throws {
        try await withOptionScene { origin, command in
            let interrupted = try await command.interrupted(
                ["-s", "1", "-o", "f.bin", origin.plainURL("/4M/f.bin?stall-after=1M:all")])
            #expect(interrupted.status == 130, "\(interrupted)")
            let outcome = try await command.run(
                "-q", "--on-change", how, "-o", "f.bin", origin.plainURL("/4M/f.bin?seed=2"))
            #expect(outcome.status == status && command.holds("f.bin", 4 << 20, seed: 2) == (status == 0), "\(outcome)")
        }
    }
}
