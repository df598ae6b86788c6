import AsyncHTTPClient
import NIOCore
import NIOPosix

extension AsyncHTTPClientTransport {
    /// 1 s: a reachable host answers sooner.
    private static let reachPatience: TimeAmount = .seconds(1)

    /// Whether the host accepts connections after the client reported a connect timeout. Then the handshake took too
    /// long.
    ///
    /// Workaround: async-http-client has one limit for connection and handshake, and does not report which of them
    /// exceeded it. No upstream issue yet; it would have to throw `tlsHandshakeTimeout` once the connection is made.
    static func isStalledHandshake(_ error: any Error, _ url: SourceURL, on loop: any EventLoop) async -> Bool {
        guard error as? HTTPClientError == .connectTimeout, url.origin.scheme == "https" else { return false }
        let host = url.origin.host.hasPrefix("[") ? String(url.origin.host.dropFirst().dropLast()) : url.origin.host
        let bootstrap = ClientBootstrap(group: loop).connectTimeout(Self.reachPatience)
        guard let channel = try? await bootstrap.connect(host: host, port: url.origin.port).get() else { return false }
        channel.close(promise: nil)
        return true
    }
}
