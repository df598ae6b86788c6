import NIOCore
import NIOWebSocket
import ServiceLifecycle

/// A WebSocket on which a client calls methods and gets notifications (RFC 6455).
struct RPCSocket: Sendable {
    typealias Connection = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    let rpc: Aria2RPC
    let events: EventLog

    /// 15 s: a ping at this interval keeps the connection, and a write to a closed one fails.
    private static let heartbeat: Duration = .seconds(15)

    /// Serves a client until it closes the connection. A client that reads slowly misses notifications.
    func run(_ connection: Connection) async {
        try? await connection.executeThenClose { inbound, outbound in
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await self.notify(outbound) }
                tasks.addTask { try await self.answer(inbound, outbound) }
                defer { tasks.cancelAll() }
                try await tasks.next()
            }
        }
    }

    private func notify(_ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>) async throws {
        var number = self.events.numberLast
        for await isChange in self.events.changes(heartbeat: Self.heartbeat).cancelOnGracefulShutdown() {
            if !isChange { try await outbound.write(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer())) }
            while case let batch = self.events.batch(after: number), let last = batch.entries.last {
                number = last.number
                for text in batch.entries.compactMap({ Aria2RPC.notification(for: $0) }) {
                    try await outbound.write(WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(string: text)))
                }
            }
        }
        try await outbound.write(WebSocketFrame(fin: true, opcode: .connectionClose, data: ByteBuffer()))
    }

    private func answer(
        _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>,
        _ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>
    ) async throws {
        for try await frame in inbound {
            switch frame.opcode {
            case .text, .binary:
                let answer = await self.rpc.answer(Array(frame.unmaskedData.readableBytesView))
                try await outbound.write(WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(bytes: answer)))
            case .ping:
                try await outbound.write(WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData))
            case .connectionClose:
                try await outbound.write(WebSocketFrame(fin: true, opcode: .connectionClose, data: frame.unmaskedData))
                return
            default: break
            }
        }
    }
}
