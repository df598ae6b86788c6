import NIOCore

extension AsyncHTTPClientTransport {
    /// 200 ms: a shutdown waits no longer for idle connections to close, so that Ctrl-C returns quickly.
    private static let shutdownPatience: TimeAmount = .milliseconds(200)

    /// Closes the connections, and ends the transport's own threads unless they are left to the process. Connections that
    /// are still being made are not waited for.
    ///
    /// Workaround: async-http-client cannot cancel a connection that is being made, and its shutdown waits for it, up
    /// to the connect timeout. No upstream issue yet; `HTTPClient.shutdown` would have to close such channels.
    static func shutDown(_ clients: HTTPClients, _ loops: ReceivingLoops, endsLoops: Bool) async {
        let isOver = Latch()
        await withCheckedContinuation { continuation in
            let resume: @Sendable () -> Void = {
                if isOver.raise() { continuation.resume() }
            }
            _ = loops.first.scheduleTask(in: Self.shutdownPatience, resume)
            clients.shutDown {
                if endsLoops { loops.shutDown(resume) } else { resume() }
            }
        }
    }
}
