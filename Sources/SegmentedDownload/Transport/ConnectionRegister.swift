import NIOCore
import NIOPosix
import SegmentedDownloadCore
import Synchronization

/// The open connections, and the network policy they must comply with.
///
/// Listing the machine's interfaces blocks, so the event loop and the tasks that fetch have a thread of the process's
/// pool do it. Without a policy nothing is listed.
final class ConnectionRegister: Sendable {
    private struct State {
        var policy = NetworkPolicy()
        var channels: [ObjectIdentifier: any Channel] = [:]
    }

    private let state = Mutex(State())
    private let interfaces: @Sendable () throws -> [NetworkInterface]

    /// - Parameter interfaces: Returns the machine's interfaces that are up. Blocks the thread.
    init(listing interfaces: @escaping @Sendable () throws -> [NetworkInterface] = { try NetworkInterface.all() }) {
        self.interfaces = interfaces
    }

    /// Sets the policy and closes connections that violate it. Blocks the thread, since it is in effect when the call
    /// returns.
    func apply(_ policy: NetworkPolicy) {
        let interfaces = policy == NetworkPolicy() ? [] : (try? self.interfaces()) ?? []
        let forbidden = self.state.withLock { state in
            state.policy = policy
            return state.channels.values.filter { !Self.allows(policy, $0, interfaces) }
        }
        for channel in forbidden { channel.close(promise: nil) }
    }

    /// The local address for a connection to a host; `nil` if the system chooses.
    func localAddress(to host: String) async throws -> String? {
        let policy = self.state.withLock { $0.policy }
        guard policy.choosesAddress else { return nil }
        let interfaces = try await NIOThreadPool.singleton.runIfActive(self.interfaces)
        return try policy.localAddress(to: host, among: interfaces)
    }

    /// The same on an event loop.
    func localAddress(to host: String, on loop: any EventLoop) -> EventLoopFuture<String?> {
        let policy = self.state.withLock { $0.policy }
        guard policy.choosesAddress else { return loop.makeSucceededFuture(nil) }
        return NIOThreadPool.singleton.runIfActive(eventLoop: loop, self.interfaces).flatMapThrowing { interfaces in
            try policy.localAddress(to: host, among: interfaces)
        }
    }

    /// Registers a new connection, on its event loop, before anything is sent.
    ///
    /// The future fails with ``DownloadError`` of code `network` if the connection violates the policy. Without a policy it
    /// has succeeded when the call returns.
    func admit(_ channel: any Channel) -> EventLoopFuture<Void> {
        // Registered before it is examined, so that a policy set meanwhile closes it.
        let policy = self.state.withLock { state in
            state.channels[ObjectIdentifier(channel)] = channel
            return state.policy
        }
        channel.closeFuture.whenComplete { _ in
            self.state.withLock { _ = $0.channels.removeValue(forKey: ObjectIdentifier(channel)) }
        }
        guard policy != NetworkPolicy() else { return channel.eventLoop.makeSucceededVoidFuture() }
        return NIOThreadPool.singleton.runIfActive(eventLoop: channel.eventLoop, self.interfaces)
            .flatMapThrowing { interfaces in
                guard Self.allows(policy, channel, interfaces) else { throw Self.refusal(of: channel, interfaces) }
            }
    }

    private static func refusal(of channel: any Channel, _ interfaces: [NetworkInterface]) -> DownloadError {
        let address = channel.localAddress?.ipAddress ?? "an unknown address"
        let interface = interfaces.first { $0.address.ipAddress == channel.localAddress?.ipAddress }
        let kind = interface?.isMetered == true ? "which is metered, and that" : "which"
        return DownloadError(
            .network, "the connection uses \(interface?.name ?? address), \(kind) is not allowed",
            isTransient: true)
    }

    private static func allows(
        _ policy: NetworkPolicy, _ channel: any Channel, _ interfaces: [NetworkInterface]
    ) -> Bool {
        guard policy != NetworkPolicy() else { return true }
        guard let address = channel.localAddress else { return false }
        return policy.allows(address, among: interfaces)
    }
}

extension NetworkPolicy {
    /// Whether connections are bound to a local address.
    fileprivate var choosesAddress: Bool { self.interfaces != nil || self.family != nil }
}
