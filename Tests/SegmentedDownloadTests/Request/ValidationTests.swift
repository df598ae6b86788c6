import SegmentedDownload
import SystemPackage
import Testing

/// The validation of a request before the download starts.
@Suite struct ValidationTests {
    @Test(
        "validate() reports every error that add() throws, with the same message",
        arguments: [
            ("Range", "bytes=0-1"), ("if-range", "x"), ("HOST", "x"), ("Content-Length", "1"), ("Accept-Encoding", "x"),
            ("Connection", "close"), ("Transfer-Encoding", "chunked"), ("If-None-Match", "x"), ("X", "a\u{1}b"),
            ("X", "a\u{7F}"), ("id", "long"), ("userInfo", "long"),
        ])
    func refused(name: String, value: String) async throws {
        var request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"))
        let long = String(repeating: "x", count: 1 << 16 + 1)
        switch (name, value) {
        case ("id", "long"): request.id = .init(rawValue: long)
        case ("userInfo", "long"): request.userInfo = ["title": long]
        default:
            request.fields = [.init("X-Good")!: "1"]
            request.fields.append(HTTPField(name: try #require(.init(name)), lenientValue: value.utf8))
        }
        let told = #expect(throws: DownloadError.self) { try request.validate() }
        #expect(told?.code == .usage)
        let refused = await #expect(throws: DownloadError.self) {
            try await withDownloadClient { client in
                try await client.withGroup { group in
                    defer { #expect(group.downloads.isEmpty) }
                    try group.add(request)
                }
            }
        }
        #expect(refused == told)
    }

    @Test("A file that would have the name of another file's part or manifest is refused")
    func ownNames() throws {
        for (name, isRefused) in [
            ("f.segdl", true), ("f.segdl-part", true), ("/a/f.segdl-new", true), ("f.segdl-old.segdl-part", true),
            // One that was set aside is resumed under this name.
            ("f.segdl-old", false), ("f.segdl-old-2", false), (".segdl", false), ("f.segdl/x", false),
            ("f.segdl.iso", false), ("f.SEGDL", false),
        ] {
            let request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"), to: .file(FilePath(name)))
            if isRefused {
                #expect(throws: DownloadError.self, "\(name)") { try request.validate() }
            } else {
                try request.validate()
            }
        }
    }

    @Test("A request that a group accepts is valid, whether its file exists or not")
    func taken() async throws {
        var request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"), to: .file("/dev/null/x"))
        request.fields = [.authorization: "Bearer x", .init("X-Empty")!: "", .init("x")!: "ü"]
        request.userInfo = ["title": String(repeating: "x", count: 1 << 15)]
        try request.validate()
        try await withDownloadClient { client in
            try await client.withGroup { group in
                let download = try group.add(paused: request)
                #expect(download.state == .paused)
            }
        }
    }

    @Test("A line break in the value of a field cannot begin another field")
    func lineBreak() throws {
        var request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"))
        request.fields = [.init("X")!: "a\r\nRange: bytes=0-1"]
        try request.validate()
        #expect(request.fields.count == 1 && request.fields[.range] == nil)
        #expect(request.fields[.init("X")!]?.utf8.contains { $0 == 0x0D || $0 == 0x0A } == false)
    }

    @Test("Requests are equal if everything that is asked of the download is, the order of fields of one name included")
    func equality() throws {
        let base = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"), to: .file("a"))
        let name = try #require(HTTPField.Name("X-Key"))
        let changes: [(inout DownloadRequest) -> Void] = [
            { $0.destination = .file("b") }, { $0.mirrors = [base.source] }, { $0.id = "name" },
            { $0.userInfo = ["key": "value"] }, { $0.credentials = .bearer(token: "t") }, { $0.segments = .exactly(3) },
            { $0.fields[values: name] = ["1", "2"] }, { $0.fields[values: name] = ["2", "1"] },
        ]
        let requests = changes.map { change in
            var request = base
            change(&request)
            return request
        }
        #expect(Set(requests + [base] + requests).count == changes.count + 1)
    }

    @Test("The request of a download equals the one that was added, whether it begins paused or not")
    func added() async throws {
        let request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"), to: .file("/dev/null/x"))
        try await withDownloadClient { client in
            try await client.withGroup { group in
                let download = try group.add(paused: request)
                #expect(download.request == request)
            }
        }
    }
}
