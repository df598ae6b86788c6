import NIOCore
import SegmentedDownloadCore
import Synchronization

/// The open connections, and the network policy they must comply with.
final class ConnectionRegister: Sendable {
    private struct State {
        var policy = NetworkPolicy()
        var channels: [ObjectIdentifier: any Channel] = [:]
    }

    private let state = Mutex(State())

    /// Sets the policy and closes connections that violate it.
    func apply(_ policy: NetworkPolicy) {
        let interfaces = (try? NetworkInterface.all()) ?? []
        let forbidden = self.state.withLock { state in
            state.policy = policy
            return state.channels.values.filter { !Self.allows(policy, $0, interfaces) }
        }
        for channel in forbidden { channel.close(promise: nil) }
    }

    /// The local address for a connection to a host; `nil` if the system chooses.
    func localAddress(to host: String) throws -> String? {
        let policy = self.state.withLock { $0.policy }
        guard policy.interfaces != nil || policy.family != nil else { return nil }
        return try policy.localAddress(to: host, among: try NetworkInterface.all())
    }

    /// Registers a new connection, on its event loop, before anything is sent.
    ///
    /// - Throws: ``Failure`` with code `network` if the connection violates the policy.
    func admit(_ channel: any Channel) throws {
        let interfaces = self.state.withLock { $0.policy } == NetworkPolicy() ? [] : try NetworkInterface.all()
        let isAllowed = self.state.withLock { state in
            guard Self.allows(state.policy, channel, interfaces) else { return false }
            state.channels[ObjectIdentifier(channel)] = channel
            return true
        }
        guard isAllowed else {
            let address = channel.localAddress?.ipAddress ?? "an unknown address"
            let interface = interfaces.first { $0.address.ipAddress == channel.localAddress?.ipAddress }
            let kind = interface?.isMetered == true ? "which is metered, and that" : "which"
            throw Failure(
                .network, "the connection uses \(interface?.name ?? address), \(kind) is not allowed",
                isTransient: true)
        }
        channel.closeFuture.whenComplete { _ in
            self.state.withLock { _ = $0.channels.removeValue(forKey: ObjectIdentifier(channel)) }
        }
    }

    private static func allows(
        _ policy: NetworkPolicy, _ channel: any Channel, _ interfaces: [NetworkInterface]
    ) -> Bool {
        guard policy != NetworkPolicy() else { return true }
        guard let address = channel.localAddress else { return false }
        return policy.allows(address, among: interfaces)
    }
}
