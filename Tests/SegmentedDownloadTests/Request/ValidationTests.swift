import SegmentedDownload
import Testing

/// The validation of a request before the download starts.
@Suite struct ValidationTests {
    @Test(
        "What a group would not take is told beforehand, in the same words",
        arguments: [
            ("Range", "bytes=0-1"), ("if-range", "x"), ("HOST", "x"), ("Content-Length", "1"), ("Accept-Encoding", "x"),
            ("Connection", "close"), ("Transfer-Encoding", "chunked"), ("If-None-Match", "x"), ("", "x"), ("a b", "x"),
            ("X", "a\nb"), ("X", "a\u{0}"), ("id", "long"), ("userInfo", "long"),
        ])
    func refused(name: String, value: String) async throws {
        var request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"))
        let long = String(repeating: "x", count: 1 << 16 + 1)
        switch (name, value) {
        case ("id", "long"): request.id = .init(rawValue: long)
        case ("userInfo", "long"): request.userInfo = ["title": long]
        default: request.fields = [("X-Good", "1"), (name, value)]
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

    @Test("A request that a group accepts is valid, whether its file exists or not")
    func taken() async throws {
        var request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"), to: .file("/dev/null/x"))
        request.fields = [("Authorization", "Bearer x"), ("X-Empty", ""), ("x", "ü")]
        request.userInfo = ["title": String(repeating: "x", count: 1 << 15)]
        try request.validate()
        try await withDownloadClient { client in
            try await client.withGroup { group in
                let download = try group.add(paused: request)
                #expect(download.state == .paused)
            }
        }
    }
}
