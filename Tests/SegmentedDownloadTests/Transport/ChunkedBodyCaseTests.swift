import NIOCore
import NIOEmbedded
import NIOHTTP1
import TestSupport
import Testing

@testable import SegmentedDownload

/// Replays `Fixtures/Cases/chunked-bodies.json`: bodies in chunks as servers send them, and what they contain.
@Suite("Chunked bodies of other programs' tests")
struct ChunkedBodyCaseTests {
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        var sent: String
        /// The body; nil if it is refused or has no end.
        var body: String?
        /// Why the value is another one than that of RFC 9112 or curl.
        var why: String?

        var testDescription: String { self.sent.debugDescription }
    }

    private struct File: Decodable { var cases: [Case] }

    static let cases = caseFile("chunked-bodies", as: File.self).cases

    /// The body of a response that arrives in these pieces, decoded as the transport does it; nil if it is refused or has no end.
    private static func body(_ pieces: [[UInt8]]) throws -> [UInt8]? {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        try channel.pipeline.syncOperations.addHandlers(
            HeadBytes(), HTTPRequestEncoder(),
            ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes)), HeadGuard())
        let request = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        try channel.writeOutbound(HTTPClientRequestPart.head(request))
        try channel.writeOutbound(HTTPClientRequestPart.end(nil))
        for piece in pieces {
            // What is refused behind the end of the body no longer counts.
            guard (try? channel.writeInbound(ByteBuffer(bytes: piece))) != nil else { break }
        }
        var bytes: [UInt8] = []
        while let part = try channel.readInbound(as: HTTPClientResponsePart.self) {
            switch part {
            case .head: break
            case .body(let buffer): bytes += buffer.readableBytesView
            case .end: return bytes
            }
        }
        return nil
    }

    @Test("The body, at any division into two pieces", arguments: Self.cases)
    func replay(given: Case) throws {
        let head = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
        let sent = Array(given.sent.utf8)
        let expected = given.body.map { Array($0.utf8) }
        let whole = try Self.body([head + sent])
        #expect(whole == expected, "\(given.why ?? "")")
        for place in 0...sent.count {
            let body = try Self.body([head + sent[..<place], Array(sent[place...])])
            #expect(body == whole, "split at \(place)")
        }
    }

    @Test("No case is lost")
    func count() {
        #expect(Self.cases.count >= 184)
    }
}
