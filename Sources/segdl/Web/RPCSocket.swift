import NIOCore
import NIOWebSocket
import ServiceLifecycle
import Synchronization

/// A WebSocket on which a client calls methods and gets notifications (RFC 6455).
struct RPCSocket: Sendable {
    typealias Connection = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    let rpc: Aria2RPC
    let events: EventLog
    let idle: IdleWatch
    private let listeners = Listeners()

    init(rpc: Aria2RPC, events: EventLog, idle: IdleWatch) {
        self.rpc = rpc
        self.events = events
        self.idle = idle
    }

    /// 15 s: a ping at this interval keeps the connection, and a write to a closed one fails.
    private static let heartbeat: Duration = .seconds(15)

    /// Serves a client until it closes the connection. A client that reads slowly misses notifications.
    ///
    /// As in aria2, a client that has not sent the secret gets notifications, which have GIDs only: some programs send
    /// nothing. There are few such clients, so that they do not keep others out.
    func run(_ connection: Connection) async {
        await self.idle.whileBusy {
            let place = Listeners.Place()
            guard self.listeners.admit(place) else {
                // Not dropped: that would trap.
                try? await connection.executeThenClose { _, _ in }
                return
            }
            await self.serve(connection, place)
            self.listeners.leave(place)
        }
    }

    private func serve(_ connection: Connection, _ place: Listeners.Place) async {
        // Before the first call, so that none of its events is missed.
        let number = self.events.numberLast
        try? await connection.executeThenClose { inbound, outbound in
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await self.notify(outbound, after: number) }
                tasks.addTask { try await self.answer(inbound, outbound, place) }
                defer { tasks.cancelAll() }
                try await tasks.next()
            }
        }
    }

    private func notify(
        _ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>, after number: Int
    ) async throws {
        var number = number
        var notifications = Aria2Notifications()
        for await isChange in self.events.changes(heartbeat: Self.heartbeat).cancelOnGracefulShutdown() {
            if !isChange { try await outbound.write(WebSocketFrame(fin: true, opcode: .ping, data: ByteBuffer())) }
            while case let batch = self.events.batch(after: number), let last = batch.entries.last {
                number = last.number
                for entry in batch.entries {
                    guard let text = notifications.message(for: entry) else { continue }
                    try await outbound.write(WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(string: text)))
                }
            }
        }
        try await outbound.write(WebSocketFrame(fin: true, opcode: .connectionClose, data: ByteBuffer()))
    }

    private func answer(
        _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>,
        _ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>, _ place: Listeners.Place
    ) async throws {
        for try await frame in inbound {
            switch frame.opcode {
            case .text, .binary:
                let answer = await self.rpc.answer(Array(frame.unmaskedData.readableBytesView))
                if answer.isAuthorized { self.listeners.leave(place) }
                try await outbound.write(
                    WebSocketFrame(fin: true, opcode: .text, data: ByteBuffer(bytes: answer.bytes)))
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

/// The clients with a WebSocket that have not sent the secret.
private final class Listeners: Sendable {
    /// The place of one of them.
    final class Place: Sendable {}

    /// 8 of the listener's 64 clients.
    private static let countMax = 8

    private let places = Mutex<Set<ObjectIdentifier>>([])

    func admit(_ place: Place) -> Bool {
        self.places.withLock { places in
            guard places.count < Self.countMax else { return false }
            places.insert(ObjectIdentifier(place))
            return true
        }
    }

    func leave(_ place: Place) { self.places.withLock { _ = $0.remove(ObjectIdentifier(place)) } }
}
