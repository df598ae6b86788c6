import NIOCore
import NIOPosix

extension AsyncHTTPClientTransport {
    /// 200 ms: a shutdown waits no longer for idle connections to close, so that Ctrl-C returns quickly.
    private static let shutdownPatience: TimeAmount = .milliseconds(200)

    /// Closes the connections. Connections that are still being made are not waited for.
    ///
    /// Workaround: async-http-client cannot cancel a connection that is being made, and its shutdown waits for it, up
    /// to the connect timeout. No upstream issue yet; `HTTPClient.shutdown` would have to close such channels.
    ///
    /// - Parameter threads: The transport's own event loops, which end too.
    static func shutDown(
        _ clients: HTTPClients, _ loop: any EventLoop, _ threads: MultiThreadedEventLoopGroup?
    ) async {
        let isOver = Latch()
        await withCheckedContinuation { continuation in
            let resume: @Sendable () -> Void = {
                if isOver.raise() { continuation.resume() }
            }
            _ = loop.scheduleTask(in: Self.shutdownPatience, resume)
            clients.shutDown {
                guard let threads else { return resume() }
                threads.shutdownGracefully { _ in resume() }
            }
        }
    }
}
