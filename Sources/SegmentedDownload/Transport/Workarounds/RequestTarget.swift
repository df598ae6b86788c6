import NIOCore
import NIOHTTP1

/// Corrects the targets of requests.
///
/// Workaround: async-http-client requests `/` instead of a path that, percent-decoded, is not UTF-8. The path is in a reserved field
/// of the request, which no server gets. No upstream issue yet; `URL.percentEncodedPath` would have to look at the encoded path.
///
/// Workaround: async-http-client sends `CONNECT` to a proxy for `http` URLs too, which proxies refuse. Their targets are rewritten
/// to absolute form (RFC 9112, section 3.2.2), from the `Host` field and the path. No upstream issue yet; the proxy support of
/// https://github.com/swift-server/async-http-client/pull/1 would have to send such requests in absolute form.
final class RequestTarget: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    /// The reserved field of requests.
    static let requestField = "segdl-target"

    /// Whether the peer is a proxy.
    private let isForwarded: Bool

    init(isForwarded: Bool) { self.isForwarded = isForwarded }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = Self.unwrapOutboundIn(data) else {
            context.write(data, promise: promise)
            return
        }
        if let target = head.headers.first(name: Self.requestField) {
            head.headers.remove(name: Self.requestField)
            head.uri = target
        }
        if self.isForwarded, let host = head.headers.first(name: "host") { head.uri = "http://\(host)\(head.uri)" }
        context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
    }
}
