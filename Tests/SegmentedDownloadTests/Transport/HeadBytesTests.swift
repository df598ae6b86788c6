import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import SegmentedDownload

/// Heads that are not UTF-8, byte for byte, in pieces, with what precedes and follows them.
@Suite("Heads with bytes that are not UTF-8")
struct HeadBytesTests {
    /// `"` + bytes + `"` after the handler: a private-use character per byte.
    private static func carried(_ bytes: [UInt8]) -> [UInt8] {
        bytes.flatMap { $0 < 0x80 ? [$0] : Array(String(Unicode.Scalar(0xF700 + UInt32($0))!).utf8) }
    }

    private static func field(_ value: [UInt8], end: String = "\r\n") -> [UInt8] {
        Array("ETag: ".utf8) + value + Array(end.utf8)
    }

    private static func head(_ fields: [[UInt8]], status: String = "200 OK", end: String = "\r\n") -> [UInt8] {
        Array("HTTP/1.1 \(status)\(end)".utf8) + fields.flatMap { $0 } + Array(end.utf8)
    }

    private static let tag: [UInt8] = Array("\"caf".utf8) + [0xE9] + Array("\"".utf8)
    /// Contains the end of a head, bytes above ASCII and another head.
    private static let body: [UInt8] =
        [0xE9, 0xFF, 0x80] + Array("\r\n\r\nHTTP/1.1 103 X\r\nA: ".utf8) + [0xE9] + Array("\r\n\r\n".utf8)

    /// The bytes that the handler passes on for these pieces of a response; and those of a second response, if given.
    private static func passed(_ pieces: [[UInt8]], then more: [[UInt8]] = []) throws -> [UInt8] {
        let channel = EmbeddedChannel(handler: HeadBytes())
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        return try Self.exchanged(pieces, on: channel) + Self.exchanged(more, on: channel)
    }

    /// Sends a request, delivers the pieces of its response, and returns what the handler passes on.
    private static func exchanged(_ pieces: [[UInt8]], on channel: EmbeddedChannel) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try channel.writeOutbound(IOData.byteBuffer(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n")))
        for piece in pieces { try channel.writeInbound(ByteBuffer(bytes: piece)) }
        while let buffer = try channel.readInbound(as: ByteBuffer.self) { bytes += buffer.readableBytesView }
        return bytes
    }

    private static func halves(_ bytes: [UInt8], at place: Int) -> [[UInt8]] {
        [Array(bytes[..<place]), Array(bytes[place...])]
    }

    @Test("A connection closed instead of answering is stale if it was used before", arguments: [1, 2], [0, 1])
    func stale(requests: Int, bytes: Int) throws {
        let answer = Self.head([Self.field(Array("x".utf8))])
        let channel = EmbeddedChannel(handler: HeadBytes())
        for _ in 1..<requests { _ = try Self.exchanged([answer], on: channel) }
        _ = try Self.exchanged(bytes == 0 ? [] : [Array(answer.prefix(bytes))], on: channel)
        var caught: (any Error)?
        do { _ = try channel.finish() } catch { caught = error }
        #expect((caught is HeadBytes.StaleConnection) == (requests > 1 && bytes == 0))
    }

    @Test(
        "A field that is not UTF-8 is encoded at any division into pieces, and the body passes unchanged",
        arguments: ["\r\n", "\n"])
    func everySplit(end: String) throws {
        let others = Self.field(Array("\"".utf8) + Array("é".utf8) + Array("\"".utf8), end: end)
        let sent = Self.head([others, Self.field(Self.tag, end: end), others], end: end) + Self.body
        let same = Self.field(Array("\"".utf8) + Array("é".utf8) + Array("\"".utf8))
        let expected = Self.head([same, Self.field(Self.carried(Self.tag)), same]) + Self.body
        for place in 0...sent.count {
            let isRight = try Self.passed(Self.halves(sent, at: place)) == expected
            #expect(isRight, "split at \(place)")
        }
        #expect(try Self.passed(sent.map { [$0] }) == expected)
    }

    @Test("A head of UTF-8 and its body pass unchanged at any division into pieces")
    func untouched() throws {
        let sent = Self.head([Self.field(Array("\"日本é\"".utf8))]) + Self.body
        for place in 0...sent.count {
            let isSame = try Self.passed(Self.halves(sent, at: place)) == sent
            #expect(isSame, "split at \(place)")
        }
    }

    @Test("Each response of a kept connection is processed, and interim ones before it")
    func several() throws {
        let interim = { (tag: [UInt8]) in Self.head([Self.field(tag)], status: "103 Early Hints") }
        let response = { (tag: [UInt8]) in interim(tag) + interim(tag) + Self.head([Self.field(tag)]) + Self.body }
        let sent = response(Self.tag)
        let expected = response(Self.carried(Self.tag))
        for place in 0...sent.count {
            let pieces = Self.halves(sent, at: place)
            let isRight = try Self.passed(pieces, then: pieces) == expected + expected
            #expect(isRight, "split at \(place)")
        }
    }

    @Test("A head is held until it is complete, and passed on as it is when the connection ends within it")
    func holds() throws {
        let channel = EmbeddedChannel(handler: HeadBytes())
        try channel.writeOutbound(IOData.byteBuffer(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n")))
        let start = Array("HTTP/1.1 200 OK\r\nETag: \"caf".utf8) + [0xE9]
        try channel.writeInbound(ByteBuffer(bytes: start))
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        channel.pipeline.fireChannelInactive()
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(bytes: start))
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    @Test(
        "What leaves no doubt about the framing is rewritten, and fields that mean nothing are left out",
        arguments: [
            ("HTTP/1.1 200 OK\nA: 1\n\n", "HTTP/1.1 200 OK\r\nA: 1\r\n\r\n"),
            ("\r\nHTTP/1.1  200 OK\r\nA: 1\r\n\r\n", "HTTP/1.1 200 OK\r\nA: 1\r\n\r\n"),
            ("http/1.1 200\r\n\r\n", "HTTP/1.1 200\r\n\r\n"), ("HTTP/2 200\r\n\r\n", "HTTP/1.1 200\r\n\r\n"),
            ("HTTP/1.0 100 Continue\n\nHTTP/1.0 200\n\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\n A: 1\r\nB: 2\r\n\r\n", "HTTP/1.1 200 OK\r\nB: 2\r\n\r\n"),
            ("HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n"),
            ("HTTP/1.2 200 OK\r\n\r\n", "HTTP/1.2 200 OK\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\nA: 1\r\n  2\r\n\t3\r\nB: 4\r\n\r\n", "HTTP/1.1 200 OK\r\nA: 1 2 3\r\nB: 4\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\nA : 1 \r\nB:2\r\n\r\n", "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n"),
            (
                "HTTP/1.1 200 OK\r\nX Y: 1\r\n: 2\r\nX[a](b)@c: 3\r\nGröße: 4\r\nE: a\u{1B}b\r\nR: a\rb\r\nA: 1\r\n\r\n",
                "HTTP/1.1 200 OK\r\nA: 1\r\n\r\n"
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: 1\r\ncontent-length: 5, 5\r\n\r\n",
                "HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 5\r\n\r\n"
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: Identity\r\nContent-Length: 5\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
            ),
        ])
    func lenient(sent: String, expected: String) throws {
        // A chunk that a rewritten head would make part of another framing passes unchanged.
        let bytes = Array(sent.utf8)
        for place in 0...bytes.count {
            let passed = try Self.passed(Self.halves(bytes, at: place))
            #expect(passed == Array(expected.utf8), "split at \(place): \(String(decoding: passed, as: UTF8.self))")
        }
    }

    @Test(
        "What leaves a doubt is refused",
        arguments: [
            "HTTP/1.1 200 OK\r\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200\rOK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding\u{0}: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length\u{B}: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\n(Content-Length): 5\r\n\r\n", "HTTP/1.1 200 OK\r\nX\u{1}Y: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nGarbage line\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r6\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\u{1}\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\u{0}\r\n\r\n",
        ])
    func doubtful(sent: String) throws {
        let channel = EmbeddedChannel(handler: HeadBytes())
        try channel.writeOutbound(IOData.byteBuffer(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n")))
        #expect(throws: HeadGuard.Refusal.self) { try channel.writeInbound(ByteBuffer(string: sent)) }
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }

    @Test(
        "The framing of chunks is rewritten at any division into pieces, and their data passes unchanged",
        arguments: [
            ("6\r\na\r\nb\n\n\r\n0\r\n\r\n", "6\r\na\r\nb\n\n\r\n0\r\n\r\n"),
            ("6  \r\na\r\nb\n\n\r\n0 \r\n\r\n", "6\r\na\r\nb\n\n\r\n0\r\n\r\n"),
            ("6\t\na\r\nb\n\n\n0\n\n", "6\r\na\r\nb\n\n\r\n0\r\n\r\n"),
            ("6 ; a=\"b\"\r\na\r\nb\n\n\r\n0;x\r\nA: 1\nB: 2\r\n\n", "6\r\na\r\nb\n\n\r\n0\r\nA: 1\r\nB: 2\r\n\r\n"),
            ("0\r\nA: 1\r\n  2\r\n\t3\r\nB: 4\r\n\r\n", "0\r\nA: 1 2 3\r\nB: 4\r\n\r\n"),
            ("0\r\n A: 1\r\nX Y: 1\r\nContent-Length: 3\r\nB : 2\r\n\r\n", "0\r\nB: 2\r\n\r\n"),
            // The decoder refuses these.
            ("0\r\nA\r\n\r\n", "0\r\n\0\n"),
            ("6 6\r\nabcdef", "6\06\r\nabcdef"), ("\r\n0\r\n", "\0\r\n0\r\n"), ("1\r\nabc\r\n", "1\r\na\0bc\r\n"),
            ("00000000000000001\r\na\r\n", "00000000000000001\r\na\r\n"),
            ("ffffffffffffffff\r\n", "fffffffffffffff\0f\r\n"), ("-1\r\n", "\0-1\r\n"),
        ])
    func chunks(sent: String, expected: String) throws {
        let head = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
        for place in 0...sent.utf8.count {
            let bytes = Self.halves(Array(sent.utf8), at: place)
            let passed = try Self.passed([head + bytes[0], bytes[1]])
            #expect(passed == head + Array(expected.utf8), "split at \(place)")
        }
    }

    @Test("Bytes that are not a head pass unchanged: garbage, a head without end, bytes before any request")
    func noHead() throws {
        let garbage = [0xE9] + Self.body
        #expect(try Self.passed([garbage]) == garbage)
        let endless =
            Array("HTTP/1.1 200 OK\r\nX: ".utf8) + [UInt8](repeating: 0xE9, count: 200 << 10) + Array("\r\n\r\n".utf8)
        #expect(try Self.passed([endless]) == endless)
        let pieces = stride(from: 0, to: endless.count, by: 1000).map { Array(endless[$0...].prefix(1000)) }
        #expect(try Self.passed(pieces) == endless)
        let channel = EmbeddedChannel(handler: HeadBytes())
        let unasked = Self.head([Self.field(Self.tag)])
        try channel.writeInbound(ByteBuffer(bytes: unasked))
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(bytes: unasked))
        _ = try channel.finish()
    }

    @Test("Different bytes decode to different texts, and a request sends the original bytes")
    func exact() throws {
        let tags: [[UInt8]] = [
            [0xE9], [0xE8], Array("é".utf8), [0xC3], [0xC3, 0xA9, 0xE9], [0xFF, 0xFE], [0x80], Array("\u{FFFD}".utf8),
            Array("\u{F7E9}".utf8), Array("日本".utf8), Array("e".utf8),
        ]
        var texts: Set<[UInt8]> = []
        for tag in tags {
            let channel = EmbeddedChannel()
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandlers(
                HeadBytes(), HTTPRequestEncoder(),
                ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes)))
            let request = { (fields: HTTPHeaders) throws -> [UInt8] in
                let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/", headers: fields)
                try channel.writeOutbound(HTTPClientRequestPart.head(head))
                try channel.writeOutbound(HTTPClientRequestPart.end(nil))
                var bytes: [UInt8] = []
                while case .byteBuffer(let buffer)? = try channel.readOutbound(as: IOData.self) {
                    bytes += buffer.readableBytesView
                }
                return bytes
            }
            _ = try request([:])
            try channel.writeInbound(
                ByteBuffer(bytes: Self.head([Self.field(tag), Array("Content-Length: 0\r\n".utf8)])))
            guard case .head(let head)? = try channel.readInbound(as: HTTPClientResponsePart.self) else {
                Issue.record("no head")
                continue
            }
            let text = try #require(head.headers.first(name: "ETag"))
            texts.insert(Array(text.utf8))
            let sent = try request(["If-Range": text])
            #expect(sent.starts(with: Array("GET / HTTP/1.1\r\nIf-Range: ".utf8) + tag + Array("\r\n".utf8)), "\(sent)")
            // No request was answered.
            _ = try? channel.finish()
        }
        #expect(texts.count == tags.count)
    }

    @Test("A name in Latin-1 is readable, a location's bytes are percent-encoded, and a tag stays exact")
    func meanings() throws {
        let carried = String(decoding: Self.carried(Array("caf".utf8) + [0xE9]), as: UTF8.self)
        #expect(ObsText.meaning(carried, of: .contentDisposition) == "café")
        #expect(ObsText.meaning(carried, of: .location) == "caf%E9")
        #expect(Array(ObsText.meaning(carried, of: .eTag).utf8) == Array(carried.utf8))
        #expect(ObsText.meaning("日本", of: .contentDisposition) == "日本")
    }
}
