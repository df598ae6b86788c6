import NIOCore
import NIOHTTP1

/// Rewrites request targets to absolute form for a proxy (RFC 9112, section 3.2.2), from the `Host` field and the path.
///
/// Workaround: async-http-client sends `CONNECT` to a proxy for `http` URLs too, which proxies refuse. No upstream
/// issue yet; the proxy support of https://github.com/swift-server/async-http-client/pull/1 would have to send such
/// requests in absolute form.
final class AbsoluteForm: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = Self.unwrapOutboundIn(data), let host = head.headers.first(name: "host") else {
            context.write(data, promise: promise)
            return
        }
        head.uri = "http://\(host)\(head.uri)"
        context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
    }
}
