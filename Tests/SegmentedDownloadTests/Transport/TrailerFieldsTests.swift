import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import SegmentedDownload

/// How trailer fields get from a connection to the reader of the body.
@Suite("Trailer fields")
struct TrailerFieldsTests {
    private static func channel(_ trailers: TrailerFields) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandlers(
            HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes)),
            TrailerFields.Tap(trailers))
        return channel
    }

    /// Sends a request, and returns its bytes.
    private static func send(_ fields: HTTPHeaders, on channel: EmbeddedChannel) throws -> String {
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/", headers: fields)
        try channel.writeOutbound(HTTPClientRequestPart.head(head))
        try channel.writeOutbound(HTTPClientRequestPart.end(nil))
        var text = ""
        while case .byteBuffer(let buffer)? = try channel.readOutbound(as: IOData.self) {
            text += String(buffer: buffer)
        }
        return text
    }

    private static func response(_ trailers: String) -> ByteBuffer {
        ByteBuffer(string: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\(trailers)\r\n")
    }

    @Test("The number of a request stays in the process, and the trailers of its response are stored under it")
    func stored() throws {
        let trailers = TrailerFields()
        let channel = try Self.channel(trailers)
        let numbers = [trailers.open(), trailers.open(), trailers.open()]
        #expect(Set(numbers).count == 3)
        for (number, fields) in zip(numbers, ["A: 1\r\n", "", "A: 2\r\nA: 3\r\n"]) {
            let sent = try Self.send([TrailerFields.requestField: "\(number)", "Accept": "*/*"], on: channel)
            #expect(sent.hasPrefix("GET / HTTP/1.1\r\nAccept: */*\r\n") && !sent.contains("segdl"), "\(sent)")
            try channel.writeInbound(Self.response(fields))
        }
        let stored = numbers.map { trailers.fields(of: $0)["A"] }
        #expect(stored == [["1"], [], ["2", "3"]])
        _ = try channel.finish()
    }

    @Test("Of a response that its reader has given up nothing is kept, nor of one without a number")
    func closed() throws {
        let trailers = TrailerFields()
        let channel = try Self.channel(trailers)
        let number = trailers.open()
        _ = try Self.send([TrailerFields.requestField: "\(number)"], on: channel)
        trailers.close(number)
        try channel.writeInbound(Self.response("A: 1\r\n"))
        #expect(trailers.fields(of: number).isEmpty)
        for value in [nil, "x", "-1", "\(number)"] {
            _ = try Self.send(HTTPHeaders(value.map { [(TrailerFields.requestField, $0)] } ?? []), on: channel)
            try channel.writeInbound(Self.response("A: 1\r\n"))
            #expect(trailers.fields(of: number).isEmpty)
        }
        _ = try channel.finish()
    }
}
