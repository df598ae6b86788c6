import NIOCore
import NIOPosix
import SegmentedDownloadCore
import Synchronization
import Testing

@testable import SegmentedDownload

/// Which connections are allowed, and where that is found out.
@Suite("The register of connections")
struct ConnectionRegisterTests {
    /// A machine with a loopback interface, which notes the threads that list it.
    private final class Machine: Sendable {
        private let threads = Mutex<[String]>([])

        /// The names of the threads since the last look.
        func take() -> [String] {
            self.threads.withLock { threads in
                defer { threads = [] }
                return threads
            }
        }

        func list() throws -> [NetworkInterface] {
            self.threads.withLock { $0.append(threadName()) }
            return [
                NetworkInterface(
                    name: "lo", address: try SocketAddress(ipAddress: "127.0.0.1", port: 0), isMetered: false)
            ]
        }
    }

    /// Runs `body` with a register, its machine and an open channel at 127.0.0.1.
    private static func run(
        _ body: (ConnectionRegister, Machine, any Channel) async throws -> Void
    ) async throws {
        let machine = Machine()
        let register = ConnectionRegister { try machine.list() }
        let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        try await body(register, machine, channel)
        // A refused channel may be closed already.
        try? await channel.close()
    }

    /// Admits a channel as the transport does, on its loop.
    private static func admit(_ channel: any Channel, to register: ConnectionRegister) async -> DownloadError.Code? {
        await failureCode { try await channel.eventLoop.flatSubmit { register.admit(channel) }.get() }
    }

    private static func isOfPool(_ threads: [String], _ count: Int) -> Bool {
        threads.count == count && threads.allSatisfy { $0.hasPrefix("SGLTN-TP-#") }
    }

    @Test("No event loop lists the machine's interfaces, and without a policy they are not listed at all")
    func threads() async throws {
        try await Self.run { register, machine, channel in
            register.apply(NetworkPolicy())
            #expect(await Self.admit(channel, to: register) == nil)
            var address = try await register.localAddress(to: "a.example")
            #expect(address == nil && machine.take().isEmpty)
            register.apply(NetworkPolicy(interfaces: ["lo"]))
            #expect(machine.take().count == 1)
            #expect(await Self.admit(channel, to: register) == nil)
            address = try await register.localAddress(to: "a.example")
            #expect(address == "127.0.0.1")
            let loop = channel.eventLoop
            address = try await loop.flatSubmit { register.localAddress(to: "a.example", on: loop) }.get()
            #expect(address == "127.0.0.1")
            let threads = machine.take()
            #expect(Self.isOfPool(threads, 3), "\(threads)")
        }
    }

    @Test("A connection from another interface is refused")
    func refused() async throws {
        try await Self.run { register, _, channel in
            register.apply(NetworkPolicy(interfaces: ["eth0"]))
            #expect(await Self.admit(channel, to: register) == .network)
        }
    }

    @Test("A policy closes the connections that violate it and were admitted before")
    func closed() async throws {
        try await Self.run { register, _, channel in
            #expect(await Self.admit(channel, to: register) == nil)
            register.apply(NetworkPolicy(interfaces: ["lo"]))
            #expect(channel.isActive)
            register.apply(NetworkPolicy(interfaces: ["eth0"]))
            try await channel.closeFuture.get()
        }
    }
}
