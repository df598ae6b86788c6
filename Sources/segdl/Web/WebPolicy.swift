/// Which requests over TCP are answered, by the names of the machine and of the page that sends them.
///
/// A page in a browser can send requests to this machine. It cannot choose their `Origin`, and if its own name leads to this
/// machine (DNS rebinding), the `Host` is that name. So both are compared with lists.
struct WebPolicy: Hashable, Sendable {
    /// Origins of other pages that may use the service, such as `https://ariang.example.org`.
    let origins: Set<String>
    /// Names of this machine besides its addresses and `localhost`, in lowercase.
    let hosts: Set<String>

    /// Why a request is refused; nil if it is allowed.
    ///
    /// - Parameters:
    ///   - host: The `Host` field, with or without a port.
    ///   - origin: The `Origin` field. Programs that are no browsers send none.
    func refusal(host: String?, origin: String?) -> String? {
        guard let host, self.isOwn(host) else { return "the Host is not this machine's" }
        guard let origin, origin != "http://\(host)", !self.origins.contains(origin) else { return nil }
        return "the Origin is not allowed"
    }

    /// Whether pages of this origin may read answers.
    func allows(origin: String?) -> Bool { origin.map { self.origins.contains($0) } ?? false }

    private func isOwn(_ host: String) -> Bool {
        let name: Substring
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") {
            name = host[..<host.index(after: end)]
        } else {
            name = host.prefix { $0 != ":" }
        }
        // An address cannot be rebound.
        if name.hasPrefix("[") { return name.allSatisfy { $0.isHexDigit || "[]:.".contains($0) } }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        if parts.count == 4, parts.allSatisfy({ UInt8($0) != nil }) { return true }
        return name.lowercased() == "localhost" || self.hosts.contains(name.lowercased())
    }
}
