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

    @Test(
        "A field that is not UTF-8 is encoded at any division into pieces, and the body passes unchanged",
        arguments: ["\r\n", "\n"])
    func everySplit(end: String) throws {
        let others = Self.field(Array("\"".utf8) + Array("é".utf8) + Array("\"".utf8), end: end)
        let sent = Self.head([others, Self.field(Self.tag, end: end), others], end: end) + Self.body
        let expected = Self.head([others, Self.field(Self.carried(Self.tag), end: end), others], end: end) + Self.body
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

    @Test("A line's end is held back only after a byte above ASCII, and not when the connection ends")
    func holdsLittle() throws {
        let channel = EmbeddedChannel(handler: HeadBytes())
        try channel.writeOutbound(IOData.byteBuffer(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n")))
        let bytes = { () throws -> [UInt8] in
            var bytes: [UInt8] = []
            while let buffer = try channel.readInbound(as: ByteBuffer.self) { bytes += buffer.readableBytesView }
            return bytes
        }
        try channel.writeInbound(ByteBuffer(bytes: Array("HTTP/1.1 200 OK\r\nETag: \"caf".utf8) + [0xE9, 0x22]))
        #expect(try bytes() == Array("HTTP/1.1 200 OK\r\nETag: \"caf".utf8))
        try channel.writeInbound(ByteBuffer(string: "\r\nDa"))
        #expect(try bytes() == Self.carried([0xE9, 0x22]) + Array("\r\nDa".utf8))
        try channel.writeInbound(ByteBuffer(bytes: [0xE8]))
        #expect(try bytes().isEmpty)
        channel.pipeline.fireChannelInactive()
        #expect(try bytes() == [0xE8])
        _ = try channel.finish(acceptAlreadyClosed: true)
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
            _ = try channel.finish()
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
