import NIOCore
import NIOPosix

/// A server on the loopback interface that answers each request with bytes, which need not be HTTP.
struct RawServer {
    struct Answer: Sendable {
        var bytes: [UInt8]
        /// Whether the connection stays open for another request.
        var keepsOpen = false
    }

    let port: Int

    /// Runs `body` with a server.
    ///
    /// - Parameter answer: Returns the answer for a request's target, such as `/7`.
    static func run<Value>(
        _ answer: @escaping @Sendable (String) -> Answer, _ body: (RawServer) async throws -> Value
    ) async throws -> Value {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let result: Result<Value, any Error>
        do {
            let listener = try await ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 512)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Answering(answer))
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            result = .success(try await body(RawServer(port: listener.localAddress?.port ?? 0)))
        } catch {
            result = .failure(error)
        }
        try await group.shutdownGracefully()
        return try result.get()
    }

    /// Answers the requests of one connection, which have no bodies and are not pipelined.
    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let answer: @Sendable (String) -> Answer
        private var received: [UInt8] = []

        init(_ answer: @escaping @Sendable (String) -> Answer) {
            self.answer = answer
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            self.received += Self.unwrapInboundIn(data).readableBytesView
            guard self.received.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return }
            let line = self.received.split(separator: UInt8(ascii: " "), maxSplits: 2)
            self.received = []
            let answer = self.answer(line.count > 1 ? String(decoding: line[1], as: UTF8.self) : "")
            context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(bytes: answer.bytes))).assumeIsolated()
                .whenComplete { _ in
                    if !answer.keepsOpen { context.close(promise: nil) }
                }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }
}
