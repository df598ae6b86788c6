import Foundation
import TestSupport
import Testing

@testable import SegmentedDownload

/// The encoding of what a server tells its clients besides events.
@Suite("Encoded status")
struct StatusCodingTests {
    private static func encoded(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    private static func copy<Value: Codable>(_ value: Value) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(try Self.encoded(value).utf8))
    }

    @Test("An identifier is its text")
    func identifier() throws {
        let id = Download.ID("film")
        #expect(try Self.encoded([id]) == "[\"film\"]" && Self.copy([id]) == [id])
        #expect(Download.ID(String(id)) == id)
    }

    @Test("Segments and summaries are decoded as they were encoded")
    func plain() throws {
        let fetching = SegmentStatus(segment: 1, start: 2, position: 3, end: nil, state: .fetching, source: 0)
        let done = SegmentStatus(segment: 0, start: 0, position: 2, end: 2, state: .done)
        #expect(try Self.copy([done, fetching]) == [done, fetching])
        let text = "{\"position\":3,\"segment\":1,\"source\":0,\"start\":2,\"state\":\"fetching\"}"
        #expect(try Self.encoded(fetching) == text)
        var summary = GroupSummary()
        (summary.completed, summary.failed, summary.bytesFetched) = (1, 2, 3)
        #expect(try Self.copy(summary) == summary)
        #expect(
            try Self.encoded(summary)
                == "{\"bytes\":0,\"bytes_fetched\":3,\"cancelled\":0,\"completed\":1,\"failed\":2,\"paused\":0}")
    }

    @Test("A URL is encoded without its password, and malformed ones are refused")
    func sourceURL() throws {
        let source = try SourceURL("https://user:secret@example.org/file.bin?a=b")
        #expect(try Self.encoded([source]) == "[\"https://example.org/file.bin?a=b\"]")
        #expect(try Self.copy([source]).map(\.string) == [source.string])
        for text in ["[\"ftp://example.org/\"]", "[\"none\"]", "[7]"] {
            #expect(throws: DecodingError.self) { try JSONDecoder().decode([SourceURL].self, from: Data(text.utf8)) }
        }
    }

    @Test("A probe's description is encoded, and a decoded one is no base for a repair with piece digests")
    func remoteFile() async throws {
        try await withTemporaryDirectory { directory in
            let source = try SourceURL("https://example.org/file.bin")
            var configuration = DownloadConfiguration()
            let link = "<https://mirror.example.org/file.bin>; rel=duplicate"
            configuration.transport = InMemoryTransport([
                source: .init(
                    Array(repeating: 7, count: 3 << 20), fields: [.eTag: "\"1\"", try #require(.init("Link")): link])
            ])
            let request = DownloadRequest(source, to: .file(directory + "/file.bin"))
            let (file, result) = try await withDownloadClient(configuration) { client in
                (try await client.probe(request), try await client.download(request))
            }
            let stored = try Self.copy(file)
            #expect(try Self.encoded(stored) == Self.encoded(file))
            #expect(
                try Self.encoded(file)
                    == "{\"bytes_total\":3145728,\"duplicates\":[\"https://mirror.example.org/file.bin\"],"
                    + "\"name\":\"file.bin\",\"ranges\":true,\"redirects\":[],\"status\":206,"
                    + "\"url\":\"https://example.org/file.bin\",\"validator\":\"ETag \\\"1\\\"\"}")

            let zeros = String(repeating: "0", count: 64)
            let check = try await FileCheck(
                of: result.path, digests: [try #require(ExpectedDigest(.sha256, hex: zeros))], length: 3 << 20,
                pieces: Metalink.PieceDigests(length: 1 << 20, algorithm: .sha256, hexes: [zeros, zeros, zeros]))
            #expect(await code { try await check.beginRepair(from: [source], as: stored) } == .usage)
            try await check.beginRepair(from: [source], as: file)
        }
    }
}
