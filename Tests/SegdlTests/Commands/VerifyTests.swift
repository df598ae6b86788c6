import Foundation
import Origin
import SegmentedDownload
import Testing

/// `segdl verify` for files that it fetched from nginx and that were damaged in many ways.
@Suite("Verifying", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct VerifyTests {
    /// 300 MiB would have two blocks per piece; this has one per piece, and a short last one.
    private static let content = OriginContent(seed: 5).bytes(0..<(12 << 20 | 12345))

    private static func fetched(
        _ settings: Nginx.Settings = .init(), _ body: (Nginx, Segdl) async throws -> Void
    ) async throws {
        try await Nginx.run(settings) { nginx in
            try nginx.serve(Self.content)
            try await withCommand { command in
                let outcome = try await command.run("-q", "-o", "f.bin", nginx.url())
                #expect(outcome.status == 0, "\(outcome)")
                // Without extended attributes there is no record to verify by.
                guard try await command.run("verify", "f.bin").status != 14 else { return }
                try await body(nginx, command)
            }
        }
    }

    private static func change(_ command: Segdl, _ change: (FileHandle) throws -> Void) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: command.path("f.bin")))
        try change(handle)
        try handle.close()
    }

    private static func holds(_ command: Segdl) -> Bool {
        FileManager.default.contents(atPath: command.path("f.bin")) == Data(Self.content)
    }

    @Test("Flipped bytes are reported by piece, and only these pieces are fetched again")
    func flipped() async throws {
        try await Self.fetched { nginx, command in
            try Self.change(command) { handle in
                for offset in [5_000_000, 5_000_001, 9_999_999, Self.content.count - 1] {
                    try handle.seek(toOffset: UInt64(offset))
                    try handle.write(contentsOf: [Self.content[offset] ^ 1])
                }
            }
            let found = try await command.run("verify", "f.bin")
            #expect(found.status == 9 && found.errors.contains("--repair"), "\(found)")
            #expect(
                found.output == """
                    f.bin: bytes 4194304-5242879 differ from what was fetched
                    f.bin: bytes 9437184-10485759 differ from what was fetched
                    f.bin: bytes 12582912-\(Self.content.count - 1) differ from what was fetched

                    """)
            let repaired = try await command.run("verify", "--json", "--repair", "f.bin", nginx.url())
            #expect(repaired.status == 0 && Self.holds(command), "\(repaired)")
            // Bytes in flight to a connection that another one replaces are received twice.
            let fetched = try #require((repaired.event("completed")?["bytes_fetched"] as? NSNumber)?.intValue)
            #expect((2 << 20..<3 << 20).contains(fetched), "\(repaired)")
            #expect(try await command.run("verify", "f.bin").status == 0)
        }
    }

    @Test("A file that was cut or has grown is repaired", arguments: [7_000_000, 0, (12 << 20) + 99_999])
    func length(_ length: Int) async throws {
        try await Self.fetched { nginx, command in
            try Self.change(command) { try $0.truncate(atOffset: UInt64(length)) }
            #expect(try await command.run("verify", "f.bin").status == 9)
            let repaired = try await command.run("verify", "-q", "--repair", "f.bin", nginx.url())
            #expect(repaired.status == 0 && Self.holds(command), "\(repaired)")
        }
    }

    private static func damage(_ command: Segdl, at offset: Int = 3_000_000) throws {
        try Self.change(command) { handle in
            try handle.seek(toOffset: UInt64(offset))
            try handle.write(contentsOf: [Self.content[offset] ^ 1])
        }
    }

    @Test("An interrupted repair is an interrupted download, and resume completes it")
    func interrupted() async throws {
        try await Self.fetched(Nginx.Settings(stopsAfter: "4m")) { nginx, command in
            // All but the beginning is damaged, and the server stops in the middle of it.
            try Self.change(command) { try $0.truncate(atOffset: 1 << 20) }
            try nginx.nearlyStop(true)
            let url = nginx.url()
            let broken = try await command.run(
                ["verify", "-q", "-s", "1", "--repair", "f.bin", url], signal: SIGKILL, afterWriting: 2 << 20)
            #expect(
                broken.status == -SIGKILL && !command.exists("f.bin") && command.exists("f.bin.segdl-part"), "\(broken)"
            )
            try nginx.nearlyStop(false)
            let resumed = try await command.run("resume", "-q", "f.bin")
            #expect(resumed.status == 0 && Self.holds(command), "\(resumed)")
        }
    }

    @Test(
        "Wrong arguments and a wrong source are reported before the file is moved",
        arguments: [
            (["-H", "Host: x"], "file.bin", 2), (["--cacert", "/none"], "file.bin", 2),
            (["--proto", "=https"], "file.bin", 11),
            ([], "gone.bin", 8), ([], "shorter.bin", 10),
        ] as [([String], String, Int32)])
    func early(options: [String], name: String, status: Int32) async throws {
        try await Self.fetched { nginx, command in
            try Self.damage(command)
            try nginx.serve(Array(Self.content.dropLast()), as: "shorter.bin")
            let failed = try await command.run(
                ["verify", "-q", "--retry", "0", "--repair"] + options + ["f.bin", nginx.url(name)])
            #expect(
                failed.status == status && command.exists("f.bin") && !command.exists("f.bin.segdl-part"), "\(failed)")
        }
    }

    @Test(
        "Pieces of another file are never mixed into this one, whether length and tag are equal or not",
        arguments: [true, false])
    func splice(hasTags: Bool) async throws {
        try await Nginx.run(Nginx.Settings(hosts: 2, hasTags: hasTags)) { nginx in
            let date = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)]
            try nginx.serve(Self.content)
            var other = Self.content
            for offset in [3_500_000, 5_500_000] { other[offset] ^= 4 }
            try nginx.serve(other, host: 2)
            for host in 1...2 { try FileManager.default.setAttributes(date, ofItemAtPath: nginx.path(host: host)) }
            try await withCommand { command in
                #expect(try await command.run("-q", "-o", "f.bin", nginx.url()).status == 0)
                guard try await command.run("verify", "f.bin").status != 14 else { return }
                // Also in the piece that differs in the other file.
                try Self.damage(command, at: 3_400_000)
                let spliced = try await command.run("verify", "-q", "--repair", "f.bin", nginx.url(host: 2))
                #expect(spliced.status == 9 && !command.exists("f.bin"), "\(spliced)")
            }
        }
    }

    @Test("A source with the same bytes and another tag repairs the file")
    func otherTag() async throws {
        try await Nginx.run(Nginx.Settings(hosts: 2)) { nginx in
            for host in 1...2 {
                try nginx.serve(Self.content, host: host)
                let date = [
                    FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 1_700_000_000 + Double(host))
                ]
                try FileManager.default.setAttributes(date, ofItemAtPath: nginx.path(host: host))
            }
            try await withCommand { command in
                #expect(try await command.run("-q", "-o", "f.bin", nginx.url()).status == 0)
                guard try await command.run("verify", "f.bin").status != 14 else { return }
                try Self.damage(command)
                let repaired = try await command.run("verify", "-q", "--repair", "f.bin", nginx.url(host: 2))
                #expect(repaired.status == 0 && Self.holds(command), "\(repaired)")
            }
        }
    }

    @Test(
        "Pieces of a Metalink document locate damage in any file, and its sources repair it", arguments: [true, false])
    func metalink(isOurs: Bool) async throws {
        try await Nginx.run { nginx in
            try nginx.serve(Self.content)
            let pieceLength = 1 << 18
            let hashes = stride(from: 0, to: Self.content.count, by: pieceLength).map { start in
                let piece = Array(Self.content[start..<min(start + pieceLength, Self.content.count)])
                return "<hash>\(MetalinkCommandTests.digest(piece, .sha1))</hash>"
            }
            let facts = """
                <size>\(Self.content.count)</size><hash type="sha-256">\(MetalinkCommandTests.digest(Self.content))</hash>
                <pieces type="sha-1" length="\(pieceLength)">\(hashes.joined())</pieces>
                """
            try await withCommand { command in
                let document = MetalinkCommandTests.metalink("other/f.bin", facts, urls: nginx.url())
                try Data(document.utf8).write(to: URL(fileURLWithPath: command.path("f.meta4")))
                if isOurs {
                    #expect(try await command.run("-q", "-o", "f.bin", nginx.url()).status == 0)
                } else {
                    try Data(Self.content).write(to: URL(fileURLWithPath: command.path("f.bin")))
                }
                #expect(try await command.run("verify", "-i", "f.meta4", "f.bin").status == 0)
                try Self.damage(command, at: 3_000_000)
                let found = try await command.run("verify", "-i", "f.meta4", "f.bin")
                #expect(found.status == 9, "\(found)")
                #expect(
                    found.output.hasPrefix("f.bin: bytes 2883584-3145727 differ from the metalink\n"), "\(found)")
                let repaired = try await command.run("verify", "--json", "--repair", "-i", "f.meta4", "f.bin")
                #expect(repaired.status == 0 && Self.holds(command), "\(repaired)")
                let fetched = try #require((repaired.event("completed")?["bytes_fetched"] as? NSNumber)?.intValue)
                #expect(fetched < 3 << 20, "\(repaired)")
                // Missing bytes at the end count as damage, and so do additional ones.
                for length in [5_000_000, Self.content.count + 99_999] {
                    try Self.change(command) { try $0.truncate(atOffset: UInt64(length)) }
                    let whole = try await command.run("verify", "-q", "--repair", "--metalink-file", "f.meta4", "f.bin")
                    #expect(whole.status == 0 && Self.holds(command), "\(whole)")
                }
                let other = try await command.run("verify", "-i", "none.meta4", "f.bin")
                #expect(other.status == 3, "\(other)")
            }
        }
    }

    @Test("A hard-linked file is left unchanged, and so is anything but a regular file")
    func links() async throws {
        try await Self.fetched { nginx, command in
            try Self.damage(command)
            try FileManager.default.linkItem(atPath: command.path("f.bin"), toPath: command.path("other"))
            let refused = try await command.run("verify", "-q", "--repair", "f.bin", nginx.url())
            #expect(
                refused.status == 12 && command.exists("f.bin") && !command.exists("f.bin.segdl-part"), "\(refused)")
            #expect(!command.exists("f.bin.segdl"))
            let nothing = "md5=d41d8cd98f00b204e9800998ecf8427e"
            #expect(try await command.run("verify", "--checksum", nothing, "/dev/null").status == 3)
        }
    }

    @Test("A file that replaces another one does not keep its record")
    func staleRecord() async throws {
        try await Self.fetched { nginx, command in
            try Self.change(command) { try $0.truncate(atOffset: 5_000_000) }
            let other = OriginContent(seed: 6).bytes(0..<Int64(Self.content.count))
            try nginx.serve(other)
            let failed = try await command.run("verify", "-q", "--repair", "f.bin", nginx.url())
            #expect(failed.status == 10 && command.exists("f.bin") && !command.exists("f.bin.segdl-part"), "\(failed)")
            let anew = try await command.run("-q", "--if-exists", "overwrite", "-o", "f.bin", nginx.url())
            #expect(anew.status == 0, "\(anew)")
            #expect(FileManager.default.contents(atPath: command.path("f.bin")) == Data(other))
            #expect(try await command.run("verify", "f.bin").status == 0)
        }
    }

    @Test("A wrong digest for an unchanged file leaves the file in place")
    func wrongDigest() async throws {
        try await Self.fetched { nginx, command in
            let zeros = "crc32=00000000"
            #expect(try await command.run("verify", "--checksum", zeros, "f.bin").status == 9)
            let kept = try await command.run("verify", "--checksum", zeros, "--repair", "f.bin", nginx.url())
            #expect(kept.status == 9 && Self.holds(command), "\(kept)")
            for arguments in [["verify", "--repair", "f.bin"], ["verify", "f.bin", nginx.url()]] {
                #expect(try await command.run(arguments).status == 2)
            }
            try Data("x".utf8).write(to: URL(fileURLWithPath: command.path("other")))
            #expect(try await command.run("verify", "other").status == 14)
            #expect(try await command.run("verify", "none").status == 3)
        }
    }
}
