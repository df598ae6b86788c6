/// A request, as a route of an ``Origin`` sees it.
public struct RoutedRequest: Sendable {
    private let request: OriginRequest

    init(_ request: OriginRequest) { self.request = request }

    public var method: String { self.request.method }
    /// The host that the client wants: of a whole URL if the origin is its proxy, otherwise of the `Host` field.
    public var host: String { self.request["host"] ?? "" }
    public var path: String { self.request.path }
    public var query: String { self.request.queryItems.joined(separator: "&") }
    /// The first value of a field, whose name is in lower case.
    public subscript(name: String) -> String? { self.request[name] }
}

/// The answer of a route.
public enum RoutedAnswer: Sendable {
    /// As the origin answers another target, such as `/64K/name?seed=2`.
    case content(String)
    case document(status: Int = 200, fields: [(name: String, value: String)] = [], String)

    /// A redirect, with further fields.
    public static func redirect(to url: String, fields: [(name: String, value: String)] = []) -> RoutedAnswer {
        .document(status: 302, fields: [("Location", url)] + fields, "")
    }
}

extension Answer {
    /// A whole document, whatever range is requested.
    init(status: Int, fields: [(name: String, value: String)], document: String, to request: OriginRequest) {
        var head = AnswerHead(status: status)
        for (name, value) in fields { head.append(name, value) }
        head.append("Content-Length", "\(document.utf8.count)")
        if !request.isKeepAlive { head.append("Connection", "close") }
        self.init(
            head: head, body: request.method == "HEAD" ? [] : [.bytes(Array(document.utf8))],
            ending: request.isKeepAlive ? .keepAlive : .close)
    }
}
