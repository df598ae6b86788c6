import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import SegmentedDownload

/// The transport that serves files from memory answers as a file server does.
@Suite("A transport in memory")
struct InMemoryTransportTests {
    private static let tag = "\"1\""
    private static let date = "Tue, 14 Nov 2023 22:13:20 GMT"

    /// The answer to a request for ten bytes, or another number.
    private static func answer(
        _ fields: HTTPFields, count: UInt8 = 10
    ) async throws -> (response: TransportResponse, body: [UInt8]) {
        let source = try SourceURL("http://example.org/file.bin")
        let file = InMemoryTransport.File(
            Array(0..<count), fields: [.eTag: Self.tag, .lastModified: Self.date])
        let transport = InMemoryTransport([source: file])
        let response = try await transport.send(TransportRequest(url: source, fields: fields))
        let pieces = response.makePieces()
        var body: [UInt8] = []
        while let piece = try await pieces.next() { body += piece }
        #expect(transport.requests == [TransportRequest(url: source, fields: fields)])
        return (response, body)
    }

    @Test(
        "One range is answered with its bytes, and a malformed one or several with the whole file",
        arguments: [
            ("bytes=0-", 206, 0..<10), ("bytes=3-", 206, 3..<10), ("bytes=3-5", 206, 3..<6),
            ("bytes=9-20", 206, 9..<10),
            ("bytes=-4", 206, 6..<10), ("bytes=-40", 206, 0..<10), ("bytes=10-", 416, 0..<0), ("bytes=-0", 416, 0..<0),
            ("bytes=5-3", 200, 0..<10), ("bytes=0-1,4-5", 200, 0..<10), ("lines=0-1", 200, 0..<10),
            ("bytes=+1-2", 200, 0..<10), ("bytes=-", 200, 0..<10), ("bytes=", 200, 0..<10),
        ] as [(String, Int, Range<Int>)])
    func ranges(range: String, status: Int, bytes: Range<Int>) async throws {
        let (response, body) = try await Self.answer([.range: range])
        #expect(response.status == status)
        #expect(body == bytes.map { UInt8($0) })
        #expect(response.fields[.contentLength] == "\(bytes.count)")
        let stated = [206: "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/10", 416: "bytes */10"][status]
        #expect(response.fields[.contentRange] == stated)
    }

    @Test(
        "A range is sent only of the version that If-Range names",
        arguments: [
            (Self.tag, 206), (Self.date, 206), ("\"2\"", 200), ("W/\"1\"", 200), ("Tue, 14 Nov 2023 22:13:21 GMT", 200),
        ])
    func conditions(condition: String, status: Int) async throws {
        let (response, body) = try await Self.answer([.range: "bytes=8-", .ifRange: condition])
        #expect(response.status == status && body.count == (status == 206 ? 2 : 10))
    }

    @Test(
        "A version that the client has already is not sent again",
        arguments: [(Self.tag, 304), ("W/\"1\"", 304), ("\"0\", \"1\"", 304), ("*", 304), ("\"2\"", 200)])
    func known(condition: String, status: Int) async throws {
        let (response, body) = try await Self.answer([.ifNoneMatch: condition])
        #expect(response.status == status && body.isEmpty == (status == 304))
    }

    @Test("Of an empty file no range can be sent")
    func empty() async throws {
        #expect(try await Self.answer([.range: "bytes=0-"], count: 0).response.status == 416)
        #expect(try await Self.answer([:], count: 0).response.status == 200)
    }

    @Test("Files are downloaded from it, missing ones are not found, and replaced ones have changed")
    func downloads() async throws {
        try await withTemporaryDirectory { directory in
            let source = try SourceURL("https://user:secret@example.org/file.bin")
            let transport = InMemoryTransport()
            var configuration = DownloadConfiguration()
            configuration.transport = transport
            let request = DownloadRequest(source, to: .file(directory + "/file.bin"))
            try await withDownloadClient(configuration) { client in
                let missing = await code { try await client.download(request) }
                #expect(missing == .server)
                transport[source] = .init(Array(repeating: 1, count: 3 << 20), fields: [.eTag: "\"1\""])
                let first = try await client.download(request)
                let second = try await client.download(request)
                #expect(first.bytes == 3.mebibytes && !first.wasAlreadyComplete && second.wasAlreadyComplete)
                transport[source] = .init([2], fields: [.eTag: "\"2\""])
                let outdated = await code { try await client.download(request) }
                #expect(outdated == .exists)
                let (bytes, remote) = (try await client.bytes(of: request), try await client.probe(request))
                #expect(bytes == [2] && remote.length == 1)
            }
        }
    }
}
