/// What the configuration file says of the files of some hosts.
struct HostSection: Hashable {
    /// Where it begins.
    let line: Int
    let hosts: [HostPattern]
    var settings: [Setting] = []

    /// Reads `[host NAME…]`.
    init?(heading: String, line: Int) {
        guard heading.hasPrefix("["), heading.hasSuffix("]") else { return nil }
        let words = heading.dropFirst().dropLast().split { $0 == " " || $0 == "\t" }
        let hosts = words.dropFirst().compactMap { HostPattern($0) }
        guard words.first == "host", !hosts.isEmpty, hosts.count == words.count - 1 else { return nil }
        self.line = line
        self.hosts = hosts
    }

    /// How exactly it names a host: of several sections about one the greatest has the last word. Absent where it is not about it.
    func rank(for host: String) -> Int? {
        self.hosts.compactMap { $0.matches(host) ? $0.rank : nil }.max()
    }

    /// What its lines have wrong together.
    var problem: String? {
        let names = Set(self.settings.map(\.name))
        let hasPassword = !names.isDisjoint(with: ["password", "http-password", "http-passwd"])
        let hasWhole = self.settings.contains { ["user", "http-user"].contains($0.name) && $0.isSecret }
        let hasUser = !names.isDisjoint(with: ["user", "http-user"])
        if hasUser, names.contains("oauth2-bearer") {
            return "user and oauth2-bearer are two ways to say who you are: give one"
        }
        // Asked for at the terminal, one would be taken for every host that has a user of that name.
        if hasUser || hasPassword, hasWhole == hasPassword || !hasUser {
            return "write user = NAME:PASSWORD, or user = NAME and password = PASSWORD"
        }
        return nil
    }
}

/// Which hosts are meant: one by its name or address, or with `*.` before it those below a domain.
struct HostPattern: Hashable {
    private let name: String
    private let isDomain: Bool

    init?(_ text: some StringProtocol) {
        var name = text.lowercased()
        self.isDomain = name.hasPrefix("*.")
        if self.isDomain { name.removeFirst(2) }
        if name.hasPrefix("["), name.hasSuffix("]"), name.contains(":") { name = String(name.dropFirst().dropLast()) }
        // A port is none of it: two colons or more are an IPv6 address.
        let colons = name.count { $0 == ":" }
        let allowed = colons > 0 ? "0123456789abcdef:." : "0123456789abcdefghijklmnopqrstuvwxyz-._"
        guard !name.isEmpty, !name.hasPrefix("."), colons != 1, colons == 0 || !self.isDomain,
            name.allSatisfy({ allowed.contains($0) })
        else { return nil }
        self.name = name
    }

    /// - Parameter host: in lower case, an IPv6 address in brackets or not.
    func matches(_ host: String) -> Bool {
        let host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        return self.isDomain ? host.hasSuffix(".\(self.name)") : host == self.name
    }

    /// Greater for whatever is meant more exactly.
    var rank: Int { self.isDomain ? self.name.utf8.count : .max }
}
