import NIOCore
import NIOPosix
import SegmentedDownloadCore

/// The addresses of hosts that the HTTP client does not look up itself.
struct HostLookup: Sendable {
    /// The addresses that the user gave.
    let given: [HostAddress]

    /// The address of an origin's host that is known without asking; empty if there is none.
    func known(_ origin: SourceURL.Origin) -> [String: String] {
        let own = self.given.last { $0.host == origin.host && $0.port == origin.port }
        if let own { return [own.host: own.address] }
        // Not every resolver knows these names (RFC 6761, section 6.3).
        return origin.host.hasSuffix(".localhost") ? [origin.host: "127.0.0.1"] : [:]
    }

    /// The address of a host, without brackets.
    func address(of origin: SourceURL.Origin, hint: String?) async throws -> String {
        let bare = origin.host.filter { $0 != "[" && $0 != "]" }
        let known = self.known(origin)[origin.host] ?? bare
        guard IPAddress.bytes(of: known) == nil else { return known }
        let address = try? await Self.threads.runIfActive {
            try SocketAddress.makeAddressResolvingHost(bare, port: origin.port)
        }
        guard let text = address?.ipAddress else {
            throw DownloadError(
                .network, "\(origin.host) was not found (name lookup failed)", hint: hint, isTransient: true)
        }
        return text
    }

    /// Throws if a host has no public address, so that no connection to a special one is begun. The client looks the name
    /// up again, and the address of the connection is examined too, before the request is sent.
    func requirePublicAddress(of origin: SourceURL.Origin) async throws {
        guard !SpecialAddress.isSpecial(try await self.address(of: origin, hint: nil)) else {
            throw SpecialAddress.refusal(of: origin.host)
        }
    }

    /// 4 threads: a name whose server does not answer blocks one for half a minute.
    private static let threads: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 4)
        pool.start()
        return pool
    }()
}
