import SegmentedDownload
import Testing

@testable import segdl

/// Arguments that are processed before or after the parser.
@Suite("Arguments")
struct ArgumentTests {
    @Test(
        "A rate is a size with an optional /s, and 0 is no limit",
        arguments: [
            ("10M", 10 << 20), ("10M/s", 10 << 20), ("10MiB/s", 10 << 20), ("1.5k/S", 1536), ("7", 7), ("0", nil),
            ("0/s", nil),
        ] as [(String, Int64?)])
    func rate(text: String, limit: Int64?) throws {
        #expect(try #require(ByteRate(argument: text)).limit == limit)
    }

    @Test("A malformed rate is refused", arguments: ["", "/s", "x", "-1", "10M/m", "1e3", "10 M"])
    func noRate(text: String) {
        #expect(ByteRate(argument: text) == nil)
    }

    static func assigned(_ arguments: String...) throws(DownloadError) -> [[String]] {
        let marked = MirrorArguments.marked(arguments)
        let mirrors = marked.filter { $0.hasPrefix("--mirror=") }.map { String($0.dropFirst(9)) }
        let rest = marked.filter { !$0.hasPrefix("--mirror=") }
        return try MirrorArguments.assigned(mirrors, among: rest).map { [$0.argument] + $0.mirrors }
    }

    @Test("A mirror belongs to the URL before it, or to the only URL in any order")
    func mirrors() throws {
        #expect(
            try Self.assigned("a", "--mirror", "b", "--mirror=c", "d", "e", "--mirror", "f") == [
                ["a", "b", "c"], ["d"], ["e", "f"],
            ])
        #expect(try Self.assigned("--mirror", "b", "a", "--mirror", "c") == [["a", "b", "c"]])
        #expect(try Self.assigned("a", "--", "--mirror", "b") == [["a"], ["--"], ["--mirror"], ["b"]])
        #expect(try Self.assigned("a", "--mirror") == [["a"], ["--mirror"]])
        for arguments in [["--mirror", "b", "a", "c"], ["--mirror", "b"]] {
            #expect(throws: DownloadError.self) {
                try MirrorArguments.assigned(
                    ["b"], among: MirrorArguments.marked(arguments).filter { $0 != "--mirror=b" })
            }
        }
    }

    @Test("The first locale variable that is set determines whether the terminal uses UTF-8")
    func locale() {
        #expect(Terminal.isUTF8([nil, nil, "en_US.UTF-8"]))
        #expect(Terminal.isUTF8(["", "C.utf8", "C"]))
        #expect(!Terminal.isUTF8(["C", "C.UTF-8", nil]))
        #expect(!Terminal.isUTF8([nil, nil, nil]))
        #expect(!Terminal.isUTF8(["de_DE.ISO-8859-1", nil, nil]))
    }

    @Test("Two files with the same id are refused, and an id that is another file's number")
    func identifiers() throws {
        func requests(_ ids: [String?]) throws -> [DownloadRequest] {
            try ids.enumerated().map { number, id in
                var request = DownloadRequest(try SourceURL("http://a/\(number)"))
                request.id = id.map { Download.ID(rawValue: $0) }
                return request
            }
        }
        try DuplicateIDs.check(try requests(["a", nil, "b"]))
        for ids in [["a", "a"], ["1", nil]] as [[String?]] {
            #expect(throws: DownloadError.self) { try DuplicateIDs.check(try requests(ids)) }
        }
        let to = { (path: String) in try DownloadRequest(SourceURL("http://a/\(path)"), to: .file(FilePath(path))) }
        var found = RequestCollection()
        try found.add(try to("x"))
        #expect(throws: DownloadError.self) { try found.add(try to(".//x")) }
        // Where `link` leads, only the system knows.
        try found.add(try to("link/../x"))
        #expect(found.requests.count == 2)
    }

    @Test("A file that is named twice is fetched once, and one with the destination of another fails alone in a list")
    func doubles() throws {
        var found = RequestCollection()
        let requests = try (0..<10_000).map { DownloadRequest(try SourceURL("http://a/\($0)")) }
        for request in requests + [requests[9999]] { try found.add(request, at: "list:\(request.source.string.count)") }
        #expect(found.requests == requests && found.refused.isEmpty)
        #expect(found.remark == "named again, and fetched once: list:13")
        var other = try DownloadRequest(SourceURL("http://b/0"))
        try found.add(other, at: "list:7")
        #expect(found.requests.count == 10_000 && found.refused.map(\.path) == ["list:7"])
        #expect(found.refused.first?.error.message.contains("from http://a/0") == true)
        #expect(throws: DownloadError.self) { try found.add(other) }
        // Both get a name of their own.
        other.ifExists = .rename
        try found.add(other, at: "list:8")
        #expect(found.requests.count == 10_001)
    }
}
