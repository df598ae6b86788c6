import SegmentedDownload
import Testing

@testable import segdl

/// The effect of options in a list on requests.
@Suite("Options of lists")
struct ListOptionTests {
    static func draft(_ options: String...) throws -> DownloadRequest {
        var request = DownloadRequest(try SourceURL("http://a/b"))
        request.fields = [.userAgent: "x", .init("A")!: "b"]
        var draft = RequestDraft(request: request, dir: "down")
        var list = InputList(Array(("http://a/b\n" + options.map { " \($0)\n" }.joined()).utf8))
        for option in try list.next()?.options ?? [] { try draft.apply(option) }
        return draft.finished
    }

    @Test("Names and directories are joined as on the command line")
    func destination() throws {
        #expect(try Self.draft().destination == .directory("down"))
        #expect(try Self.draft("out=x").destination == .file("down/x"))
        #expect(try Self.draft("out=x", "dir=/y").destination == .file("/y/x"))
        #expect(try Self.draft("dir=/y", "out=/x").destination == .file("/x"))
        #expect(try Self.draft("out=x/").destination == .directory("down/x"))
        #expect(try Self.draft("out=x//").destination == .directory("down/x"))
        #expect(try Self.draft("out=/").destination == .directory("/"))
    }

    @Test("Numbers, sizes, rates and words have the same form as on the command line")
    func values() throws {
        let request = try Self.draft(
            "split=3", "priority=0.25", "max-download-limit=1M/s", "id=n", "user-info=k=v=w", "if-exists=rename",
            "continue=true", "on-change=restart", "min-split-size=2M", "max-filesize=1k", "retry=0",
            "stall-timeout=2m", "head-timeout=20m", "max-time=1h", "file-allocation=none")
        #expect(request.segments == .exactly(3) && request.priority == 0.25)
        #expect(request.bytesPerSecond == 1 << 20 && request.id == "n" && request.userInfo == ["k": "v=w"])
        #expect(request.ifExists == .rename && request.continuation == .auto && request.onChange == .restart)
        #expect(request.splitLengthMinimum == 2 << 20 && request.lengthMaximum == 1024 && request.retries == 0)
        #expect(request.stallTimeout == .seconds(120) && !request.allocates)
        #expect(request.timeLimit == .seconds(3600) && request.headTimeout == .seconds(1200))
        #expect(try Self.draft("limit-rate=0").bytesPerSecond == nil)
        #expect(try Self.draft("continue=false").continuation == .no)
        #expect(try Self.draft("segments=auto").segments == .automatic)
    }

    @Test("An option of aria2 that is off is ignored, and gid is the id")
    func off() throws {
        #expect(try Self.draft("gid=0123456789abcdef").id == "0123456789abcdef")
        let request = try Self.draft("pause=false", "all-proxy=", "bt-enable-lpd=false", "max-tries=")
        #expect(request == (try Self.draft()))
    }

    @Test("Header fields are added, and those with an option of their own are replaced")
    func fields() throws {
        let request = try Self.draft("header=C: d", "header=C:e", "user-agent=y", "referer=z")
        #expect(
            request.fields.map { "\($0.name.rawName): \($0.value)" } == [
                "A: b", "C: d", "C: e", "User-Agent: y", "Referer: z",
            ])
    }

    @Test("A checksum can have aria2's form")
    func checksum() throws {
        let hex = String(repeating: "0", count: 64)
        let digests = try Self.draft("checksum=sha-256=\(hex)", "checksum=crc32=00000000").digests
        #expect(digests.map(\.description) == ["sha256=\(hex)", "crc32=00000000"])
    }

    @Test(
        "A malformed value is reported with its line and key",
        arguments: [
            "split=0", "split=x", "priority=0", "priority=1.5", "priority=nan", "priority=-1", "limit-rate=fast",
            "id=", "user-info=x", "if-exists=yes", "continue=maybe", "on-change=", "min-split-size=0",
            "max-filesize=-1", "retry=-1", "stall-timeout=0", "max-time=never", "file-allocation=prealloc", "out=",
            "out=-", "dir=",
            "checksum=sha-256=12", "header=x", "header=Range: bytes=1-", "header=A b: c", "header=A: b\u{1}",
            "user-agent=a\u{1}",
            "referer=\u{7F}",
        ])
    func malformed(option: String) {
        let problem = #expect(throws: ListProblem.self) { try Self.draft("split=2", option) }
        #expect(problem?.place == .line(3))
        #expect(problem?.message.contains(option.prefix { $0 != "=" }) == true, "\(String(describing: problem))")
    }

    @Test(
        "A URL in the place of an option or of its value is reported without its secrets",
        arguments: [
            "http-proxy://u:secret@h/=1",
            "segments=http://u:secret@h/f?secret", "checksum=http://h/f?secret", "header=//u:secret@h/",
        ])
    func secrets(option: String) {
        let problem = #expect(throws: ListProblem.self) { try Self.draft(option) }
        #expect(problem?.message.contains("secret") == false, "\(String(describing: problem))")
    }

    @Test(
        "An unknown key is reported, with the equivalent if there is one",
        arguments: [
            ("foo=1", "\"foo\" is not an option"), ("seed-time=0", "BitTorrent"), ("max-tries=3", "retry=N"),
            ("allow-overwrite=true", "if-exists=overwrite"), ("ftp-user=x", "http and https"),
            ("OUT=x", "\"OUT\" is not an option"),
        ])
    func unknown(option: String, words: String) {
        let problem = #expect(throws: ListProblem.self) { try Self.draft(option) }
        #expect(problem?.place == .line(2))
        #expect(problem?.message.contains(words) == true, "\(String(describing: problem))")
    }
}
