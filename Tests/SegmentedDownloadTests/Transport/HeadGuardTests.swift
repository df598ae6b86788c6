import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import SegmentedDownload

/// Responses that the HTTP client must not receive.
@Suite("The guard behind the decoder")
struct HeadGuardTests {
    /// What the client receives of a response: the statuses of heads, the number of ends, and the refusal.
    private struct Received: Hashable {
        var statuses: [UInt] = []
        var bytes = 0
        var ends = 0
        var refusal: String?
        var isOpen = true
    }

    /// Sends a request, and delivers the pieces of its response.
    private static func received(_ pieces: [String]) throws -> Received {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        try channel.pipeline.syncOperations.addHandlers(
            HTTPRequestEncoder(),
            ByteToMessageHandler(
                HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes, informationalResponseStrategy: .forward)),
            HeadGuard())
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()
        try channel.writeOutbound(HTTPClientRequestPart.head(.init(version: .http1_1, method: .GET, uri: "/")))
        try channel.writeOutbound(HTTPClientRequestPart.end(nil))
        var received = Received()
        for piece in pieces where channel.isActive {
            do {
                try channel.writeInbound(ByteBuffer(string: piece))
            } catch let refusal as HeadGuard.Refusal {
                received.refusal = refusal.reason
            }
        }
        while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
            switch part {
            case .head(let head): received.statuses.append(head.status.code)
            case .body(let body): received.bytes += body.readableBytes
            case .end: received.ends += 1
            }
        }
        received.isOpen = channel.isActive
        return received
    }

    private static let bodies = [
        "\r\n", "Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ]

    @Test("A status below 100 is refused before the client receives any part of the response", arguments: 0..<100)
    func belowAll(status: Int) throws {
        for body in Self.bodies {
            let line = "HTTP/1.1 \(status / 100)\(status / 10 % 10)\(status % 10) X\r\n"
            let received = try Self.received([line + body, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
            let reason = "sent the status \(status), and HTTP has none below 100"
            #expect(received == Received(refusal: reason, isOpen: false))
        }
    }

    @Test("Any other status passes with its body, in one piece or byte by byte", arguments: [200, 206, 404, 600, 999])
    func others(status: Int) throws {
        let response = "HTTP/1.1 \(status) X\r\nContent-Length: 5\r\n\r\nhello"
        for pieces in [[response], response.map { "\($0)" }] {
            let received = try Self.received(pieces)
            #expect(received == Received(statuses: [UInt(status)], bytes: 5, ends: 1))
        }
    }

    @Test("A response may follow 32 interim ones, and the next interim one is refused")
    func interim() throws {
        let final = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        let interim = { (count: Int) in String(repeating: "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", count: count)
        }
        let most = try Self.received([interim(32) + final])
        #expect(most == Received(statuses: Array(repeating: 103, count: 32) + [200], ends: 1))
        for pieces in [[interim(33) + final], [interim(32), interim(1), final]] {
            let more = try Self.received(pieces)
            #expect(more.statuses == Array(repeating: 103, count: 32) && more.ends == 0 && !more.isOpen)
            #expect(more.refusal == "sent more than 32 interim responses to one request")
        }
    }

    @Test("101 is a final response, because no other follows on the connection")
    func switching() throws {
        let received = try Self.received(["HTTP/1.1 101 Switching Protocols\r\n\r\n"])
        #expect(received == Received(statuses: [101], ends: 1))
    }

    @Test("Trailers that are too many or too long are refused, and others pass")
    func trailers() throws {
        let response = { (trailers: String) in
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\(trailers)\r\n"
        }
        let few = try Self.received([response("A: b\r\n")])
        #expect(few == Received(statuses: [200], bytes: 5, ends: 1))
        let line = "X-Field: \(String(repeating: "x", count: 1000))\r\n"
        for trailers in [
            String(repeating: "A: b\r\n", count: 201), String(repeating: line, count: 70),
        ] {
            let received = try Self.received([response(trailers)])
            #expect(received.ends == 0 && !received.isOpen)
            #expect(received.refusal?.hasPrefix("sent trailers of ") == true, "\(received)")
        }
    }
}
