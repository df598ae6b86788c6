import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// The sockets of an origin: its listeners, its connections and their event loops.
final class OriginServer: Sendable {
    private struct State {
        var listeners: [any Channel] = []
        var connections: [ObjectIdentifier: any Channel] = [:]
    }

    let log: OriginLog
    let resources: OriginResources
    private let hosts: [String]
    private let context: NIOSSLContext?
    private let group: MultiThreadedEventLoopGroup
    private let state = Mutex(State())

    init(_ configuration: Origin.Configuration) throws {
        self.log = OriginLog()
        self.resources = OriginResources(log: self.log)
        self.hosts = configuration.hosts
        self.context = configuration.tls ? try Self.makeContext(configuration) : nil
        self.group = MultiThreadedEventLoopGroup(numberOfThreads: configuration.eventLoops)
    }

    /// Listens on all hosts at one port, which the system chooses if it is zero.
    func listen(port: Int) async throws -> Int {
        // The port that the system chooses for the first host may be in use on the second.
        var attemptsLeft = port == 0 ? 8 : 1
        while true {
            attemptsLeft -= 1
            do {
                var chosen = port
                for host in self.hosts {
                    let listener = try await self.bootstrap.bind(host: host, port: chosen).get()
                    self.state.withLock { $0.listeners.append(listener) }
                    chosen = listener.localAddress?.port ?? chosen
                }
                return chosen
            } catch {
                try await self.stopListening()
                if attemptsLeft == 0 { throw error }
            }
        }
    }

    func stopListening() async throws {
        let listeners = self.state.withLock { state in
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in listeners { try await listener.close() }
    }

    /// Resets all connections.
    func disconnect() async throws {
        let connections = self.state.withLock { Array($0.connections.values) }
        for connection in connections {
            try await connection.eventLoop.submit { connection.resetTransport() }.get()
        }
    }

    func shutDown() async throws {
        try await self.stopListening()
        // A TLS connection would wait for the peer's `close_notify`.
        try await self.disconnect()
        try await self.group.shutdownGracefully()
    }

    private var bootstrap: ServerBootstrap {
        ServerBootstrap(group: self.group)
            .serverChannelOption(.backlog, value: 512)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
            // Two to four slices: enough to keep the socket busy; a slow reader occupies no more than this.
            .childChannelOption(.writeBufferWaterMark, value: .init(low: 512 * 1024, high: 1024 * 1024))
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { channel.closeOnExec() }
            }
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try self.initialize(channel) }
            }
    }

    private func initialize(_ channel: any Channel) throws {
        channel.closeOnExec()
        let id = ObjectIdentifier(channel)
        self.state.withLock { $0.connections[id] = channel }
        channel.closeFuture.whenComplete { _ in self.state.withLock { $0.connections[id] = nil } }
        let pipeline = channel.pipeline.syncOperations
        if let context = self.context { try pipeline.addHandler(NIOSSLServerHandler(context: context)) }
        try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
        try pipeline.addHandler(OriginHandler(resources: self.resources, log: self.log))
    }

    private static func makeContext(_ setup: Origin.Configuration) throws -> NIOSSLContext {
        let (chain, key) =
            switch setup.certificate {
            case .good: (OriginCertificates.good, OriginCertificates.goodKey)
            case .expired: (OriginCertificates.expired, OriginCertificates.expiredKey)
            case .wrongHost: (OriginCertificates.wrongHost, OriginCertificates.wrongHostKey)
            case .selfSigned: (OriginCertificates.selfSigned, OriginCertificates.selfSignedKey)
            case .p521: (OriginCertificates.p521, OriginCertificates.p521Key)
            case .ed25519: (OriginCertificates.ed25519, OriginCertificates.ed25519Key)
            }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(chain.utf8)).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(key.utf8), format: .pem))
        )
        configuration.minimumTLSVersion = setup.isLegacyTLS ? .tlsv1 : .tlsv12
        configuration.maximumTLSVersion = setup.isLegacyTLS ? .tlsv11 : nil
        return try NIOSSLContext(configuration: configuration)
    }
}
