import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Lets the kernel find out whether the peer of a connection is still there, because a response head may be waited for long.
///
/// A server that is busy acknowledges the probes. A connection to one that is gone, or behind a gateway that has forgotten it, ends
/// with an error. The probes also keep the entry of such a gateway.
enum KeepAlive {
    /// 15 s, in seconds: a gateway keeps an entry for longer, and the probes cost nothing.
    static let interval: SocketOptionValue = 15

    /// 75 s in milliseconds: five unanswered intervals. Also the limit for a request that is not acknowledged.
    static let silenceMax: SocketOptionValue = 75_000

    /// Sets the options of a new connection. One that the system does not support is left out.
    static func begin(on channel: any Channel) -> EventLoopFuture<Void> {
        let options: [(ChannelOptions.Types.SocketOption, SocketOptionValue)] = [
            (.socketOption(.so_keepalive), 1),
            (.tcpOption(.init(rawValue: TCP_KEEPIDLE)), Self.interval),
            (.tcpOption(.init(rawValue: TCP_KEEPINTVL)), Self.interval),
            (.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), Self.silenceMax),
        ]
        let changes = options.map { option, value in channel.setOption(option, value: value) }
        return EventLoopFuture.andAllComplete(changes, on: channel.eventLoop)
    }
}
