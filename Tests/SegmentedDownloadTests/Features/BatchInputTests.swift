import Origin
import SegmentedDownload
import Testing

@Suite struct BatchInputTests {
    private static let catalogue = #"""
        {"code": 0, "data": {"list": [
            {"path": "http://a.example/one.mp4", "title": "../First.mp4"}, {"path": "two.mp4"}
        ]}}
        """#

    @Test(
        "The items of a JSON list become requests: URL and name by their keys, relative URLs by what they are relative to"
    )
    func items() throws {
        let list = try BatchInput(
            json: Self.catalogue.utf8, at: ".data.list[]", urlKey: "path", nameKey: "title",
            relativeTo: "https://u:p@b.example/videos/")
        #expect(list.items.map(\.name) == ["First.mp4", nil])
        #expect(list.items.map(\.place) == [".data.list[0]", ".data.list[1]"])
        let requests = list.requests(in: "videos")
        #expect(requests.map(\.source.description) == ["http://a.example/one.mp4", "https://b.example/videos/two.mp4"])
        #expect(requests.map(\.destination) == [.file("videos/First.mp4"), .directory("videos")])
        #expect(list.requests(in: "/").first?.destination == .file("/First.mp4"))
        #expect(try BatchInput(json: #"["http://a.example/x"]"#.utf8).items.count == 1)
        #expect(try BatchInput(json: "[]".utf8).items.isEmpty)
    }

    @Test(
        "One bad item refuses the list, and is named",
        arguments: [
            (#"["http://a.example/x", "ftp://a.example/y"]"#, nil, "[1]"), (#"["x"]"#, nil, "[0]"),
            (#"{"list": [1]}"#, ".list[]", ".list[0]"), (#"{"list": [1]}"#, ".lost[]", ".lost"), ("[", nil, "the list"),
            ("[]", "list]", "list]"),
        ] as [(String, String?, String)])
    func refused(document: String, path: String?, said: String) {
        let error = #expect(throws: DownloadError.self) { try BatchInput(json: document.utf8, at: path) }
        #expect(error?.message.contains(said) == true, "\(String(describing: error))")
    }

    @Test("A list fetched as JSON is downloaded, each item under its name")
    func downloads() async throws {
        try await Harness.run { harness in
            let document = """
                [{"url": "\(harness.origin.url("/100k/a.bin?seed=1"))", "name": "one.bin"},
                 {"url": "\(harness.origin.url("/200k/b.bin?seed=2"))"}]
                """
            let list = try BatchInput(json: document.utf8, nameKey: "name")
            try await harness.withGroup { group in
                for request in list.requests(in: FilePath(harness.directory)) { try group.add(request) }
                await group.waitForAll()
            }
            #expect(try harness.names() == ["b.bin", "one.bin"])
        }
    }
}
