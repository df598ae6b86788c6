import NIOCore
import NIOPosix
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite("Keep-alive probes")
struct KeepAliveTests {
    @Test("The kernel looks for a silent peer every 15 s, and ends the connection after 75 s")
    func options() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let server = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let channel = try await ClientBootstrap(group: group).connect(host: "127.0.0.1", port: port).get()
        try await KeepAlive.begin(on: channel).get()
        let isOn = try await channel.getOption(ChannelOptions.Types.SocketOption.socketOption(.so_keepalive)).get()
        #expect(isOn != 0)
        let expected: [(CInt, SocketOptionValue)] = [
            (TCP_KEEPIDLE, 15), (TCP_KEEPINTVL, 15), (TCP_USER_TIMEOUT, 75_000),
        ]
        for (name, value) in expected {
            let option = ChannelOptions.Types.SocketOption.tcpOption(.init(rawValue: name))
            #expect(try await channel.getOption(option).get() == value)
        }
        channel.close(promise: nil)
        server.close(promise: nil)
    }
}
