/// A request head as the origin received it.
struct OriginRequest: Sendable {
    var method: String
    /// As sent: path and query, or a whole URL from a client that uses the origin as a proxy.
    var target: String
    var headers: [(name: String, value: String)]
    /// Whether the client leaves the connection open after the answer.
    var isKeepAlive: Bool

    /// The first value of a field.
    subscript(name: String) -> String? {
        self.headers.first { $0.name.lowercased() == name }?.value
    }

    var path: String { Self.split(self.target).path }

    /// The raw `key=value` items of the query, in order.
    var queryItems: [Substring] { Self.split(self.target).query.split(separator: "&") }

    /// The key of the origin's counts: the path and the query, without the token that a redirect adds.
    var stateKey: String {
        let items = self.queryItems.filter { !$0.hasPrefix("token=") }
        return self.path + "?" + items.joined(separator: "&")
    }

    private static func split(_ target: String) -> (path: String, query: Substring) {
        var rest = target[...]
        if !rest.hasPrefix("/"), let authority = rest.firstRange(of: "://") {
            rest = rest[authority.upperBound...]
            rest = rest[(rest.firstIndex(of: "/") ?? rest.endIndex)...]
        }
        guard let mark = rest.firstIndex(of: "?") else { return (String(rest), "") }
        return (String(rest[..<mark]), rest[rest.index(after: mark)...])
    }
}
