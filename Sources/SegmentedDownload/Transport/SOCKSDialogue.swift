import SegmentedDownloadCore

/// Asks a SOCKS proxy for a connection: SOCKS 5 (RFC 1928) with a user name and a password (RFC 1929), or SOCKS 4 and 4a
/// (https://www.openssh.com/txt/socks4.protocol, socks4a.protocol).
struct SOCKSDialogue: TunnelDialogue {
    private enum State {
        case method, login, reply
        /// The reply of SOCKS 4.
        case reply4
    }

    private let proxy: Proxy
    private let goal: TunnelGoal
    private var state: State
    private var received: [UInt8] = []

    init(_ proxy: Proxy, to goal: TunnelGoal) {
        self.proxy = proxy
        self.goal = goal
        self.state = proxy.kind == .socks4 || proxy.kind == .socks4a ? .reply4 : .method
    }

    /// No authentication, and with a user name and a password.
    private static let (noLogin, password): (UInt8, UInt8) = (0, 2)

    func begin() throws -> [UInt8] {
        guard self.state == .reply4 else {
            return self.proxy.user == nil ? [5, 1, Self.noLogin] : [5, 2, Self.noLogin, Self.password]
        }
        let user = Array((self.proxy.user ?? "").utf8)
        let port = Self.bytes(of: self.goal.port)
        if let address = IPAddress.bytes(of: self.goal.host) {
            guard address.count == 4 else {
                throw self.failure("cannot be asked for an IPv6 address: that takes SOCKS 5", isTransient: false)
            }
            return [4, 1] + port + address + user + [0]
        }
        return [4, 1] + port + [0, 0, 0, 1] + user + [0] + Array(self.goal.host.utf8) + [0]
    }

    mutating func read(_ bytes: some Sequence<UInt8>) throws -> TunnelStep {
        self.received += bytes
        switch self.state {
        case .method:
            guard let answer = try self.take(2) else { return .waiting }
            guard answer[0] == 5 else { throw self.failure("does not speak SOCKS 5", isTransient: false) }
            switch answer[1] {
            case Self.noLogin:
                self.state = .reply
                return .sending(self.request)
            case Self.password where self.proxy.user != nil:
                self.state = .login
                let (user, password) = (Array((self.proxy.user ?? "").utf8), Array((self.proxy.password ?? "").utf8))
                return .sending([1, UInt8(user.count)] + user + [UInt8(password.count)] + password)
            default: throw self.loginFailure(self.proxy.user == nil ? "requires credentials" : "accepts no password")
            }
        case .login:
            guard let answer = try self.take(2) else { return .waiting }
            guard answer[1] == 0 else { throw self.loginFailure("rejects the name or the password") }
            self.state = .reply
            return .sending(self.request)
        case .reply:
            guard self.received.count > 4 else { return .waiting }
            guard self.received[0] == 5 else { throw self.failure("does not speak SOCKS 5", isTransient: false) }
            guard self.received[1] == 0 else { throw self.refusal(self.received[1]) }
            let addressLength =
                switch self.received[3] {
                case 1: 4
                case 3: 1 + Int(self.received[4])
                case 4: 16
                default: throw self.failure("answered with an unknown kind of address", isTransient: false)
                }
            return try self.take(6 + addressLength) == nil ? .waiting : .open
        case .reply4:
            guard let answer = try self.take(8) else { return .waiting }
            switch (answer[0], answer[1]) {
            case (0, 90): return .open
            case (0, 91): throw self.failure("did not connect to \(self.goal)", isTransient: true)
            case (0, 92), (0, 93): throw self.loginFailure("rejects the user")
            default: throw self.failure("does not speak SOCKS 4", isTransient: false)
            }
        }
    }

    /// Takes an answer of this length; nil before it is there. The proxy has nothing to say after it.
    private mutating func take(_ length: Int) throws -> [UInt8]? {
        guard self.received.count >= length else { return nil }
        guard self.received.count == length else {
            throw self.failure("sent more than an answer", isTransient: false)
        }
        defer { self.received = [] }
        return self.received
    }

    private var request: [UInt8] {
        let host = Array(self.goal.host.utf8)
        let address: [UInt8]
        switch IPAddress.bytes(of: self.goal.host) {
        case let bytes? where bytes.count == 4: address = [1] + bytes
        case let bytes?: address = [4] + bytes
        // The names of hosts have at most 253 bytes.
        case nil: address = [3, UInt8(clamping: host.count)] + host
        }
        return [5, 1, 0] + address + Self.bytes(of: self.goal.port)
    }

    private static func bytes(of port: Int) -> [UInt8] { [UInt8(port >> 8 & 0xFF), UInt8(port & 0xFF)] }

    /// The failure for a reply code (RFC 1928 §6).
    private func refusal(_ code: UInt8) -> DownloadError {
        let reason: String? =
            switch code {
            case 2: "its rules do not allow it"
            case 3: "the network cannot be reached"
            case 4: "the host cannot be reached, or was not found"
            case 5: "the connection was refused"
            case 6: "the connection took too long"
            case 7, 8: "it cannot do that"
            default: nil
            }
        return self.failure(
            "did not connect to \(self.goal)\(reason.map { ": \($0)" } ?? "")", isTransient: ![2, 7, 8].contains(code))
    }

    private func failure(_ what: String, isTransient: Bool) -> DownloadError {
        DownloadError(.network, "the proxy \(self.proxy) \(what)", isTransient: isTransient)
    }

    private func loginFailure(_ what: String) -> DownloadError {
        DownloadError(.auth, "the proxy \(self.proxy) \(what)", remedy: .giveProxyCredentials)
    }
}
