import NIOCore
import NIOHTTP1
import Synchronization

/// Keeps the trailer fields of responses until the bodies were read.
///
/// The reader of a response opens a number and sends it in a reserved field of the request. ``Tap`` removes the field,
/// which no server gets, and stores the trailers under the number before the client receives the end of the response.
///
/// Workaround: async-http-client drops the trailer fields of responses. No upstream issue yet;
/// `HTTPClientResponseDelegate` would need a method that receives them.
final class TrailerFields: Sendable {
    /// The reserved field of requests.
    static let requestField = "segdl-response"

    private struct State {
        var last: UInt64 = 0
        /// By number, for responses whose readers have not finished.
        var fields: [UInt64: HTTPHeaders] = [:]
    }

    private let state = Mutex(State())

    /// Keeps the trailers of the response to the request that carries the returned number, until ``close(_:)``.
    func open() -> UInt64 {
        self.state.withLock { state in
            state.last += 1
            state.fields[state.last] = HTTPHeaders()
            return state.last
        }
    }

    func close(_ number: UInt64) {
        self.state.withLock { _ = $0.fields.removeValue(forKey: number) }
    }

    /// The trailers of a response that has ended; empty if it has none.
    func fields(of number: UInt64) -> HTTPHeaders {
        self.state.withLock { $0.fields[number] } ?? HTTPHeaders()
    }

    private func store(_ fields: HTTPHeaders, of number: UInt64) {
        // Not if the reader has given the response up.
        self.state.withLock { state in
            if state.fields[number] != nil { state.fields[number] = fields }
        }
    }

    /// Takes the number out of request heads, and stores the trailers of responses. It sits behind the decoder.
    final class Tap: ChannelDuplexHandler, RemovableChannelHandler {
        typealias InboundIn = HTTPClientResponsePart
        typealias InboundOut = HTTPClientResponsePart
        typealias OutboundIn = HTTPClientRequestPart
        typealias OutboundOut = HTTPClientRequestPart

        private let trailers: TrailerFields
        /// The number of the last request. The client does not pipeline, so the next response belongs to it.
        private var number: UInt64?

        init(_ trailers: TrailerFields) {
            self.trailers = trailers
        }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            guard case .head(var head) = Self.unwrapOutboundIn(data) else {
                return context.write(data, promise: promise)
            }
            self.number = head.headers.first(name: TrailerFields.requestField).flatMap { UInt64($0) }
            head.headers.remove(name: TrailerFields.requestField)
            context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .end(let fields?) = Self.unwrapInboundIn(data), let number = self.number {
                self.trailers.store(fields, of: number)
            }
            context.fireChannelRead(data)
        }
    }
}
