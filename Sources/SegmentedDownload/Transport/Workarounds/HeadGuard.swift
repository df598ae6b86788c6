import NIOCore
import NIOHTTP1

/// Refuses responses that the HTTP client cannot take: with a status below 100, with too many interim heads, or with
/// too large trailers.
///
/// The handler sits directly behind the decoder. After a refusal it closes the connection and drops what the decoder
/// still reads from the bytes received.
///
/// Workaround: async-http-client ignores any head with a status below 200, except 101, and ends the process with a
/// `preconditionFailure` when the body or the end of a response follows. The decoder sends these after any status that
/// is not from 100 to 199. No upstream issue yet; `HTTPRequestStateMachine` would have to fail the request.
final class HeadGuard: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    /// Why a response is refused.
    struct Refusal: Error, Hashable {
        /// The rest of a sentence that begins with the server's name.
        let reason: String
    }

    /// 32: a server sends a few, one for each hint or sign of life. Without a limit, an endless series would occupy the
    /// connection until the deadline of the head.
    static let interimHeadsMax = 32
    /// 64 KiB and 200 fields, as for heads: trailers are kept until the body was read.
    static let trailersLengthMax = 64 << 10
    static let trailersMax = 200

    /// The interim heads of the current response.
    private var interimHeads = 0
    private var hasRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.hasRefused else { return }
        guard let refusal = self.refusal(of: Self.unwrapInboundIn(data)) else { return context.fireChannelRead(data) }
        self.hasRefused = true
        context.fireErrorCaught(refusal)
        context.close(promise: nil)
    }

    private func refusal(of part: HTTPClientResponsePart) -> Refusal? {
        switch part {
        case .head(let head):
            let status = head.status.code
            guard status >= 100 else {
                return Refusal(reason: "sent the status \(status), and HTTP has none below 100")
            }
            guard status < 200, head.status != .switchingProtocols else {
                self.interimHeads = 0
                return nil
            }
            self.interimHeads += 1
            guard self.interimHeads > Self.interimHeadsMax else { return nil }
            return Refusal(reason: "sent more than \(Self.interimHeadsMax) interim responses to one request")
        case .end(let trailers?):
            // Each field also has a colon, a space and a line end.
            let length = trailers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
            guard length > Self.trailersLengthMax || trailers.count > Self.trailersMax else { return nil }
            return Refusal(
                reason: "sent trailers of \(trailers.count) fields and \(length) bytes, more than \(Self.trailersMax) "
                    + "and \(Self.trailersLengthMax)")
        case .body, .end(nil): return nil
        }
    }
}
