import HTTPTypes
import SegmentedDownloadCore

/// Asks an HTTP proxy for a connection with `CONNECT` (RFC 9110 §9.3.6).
struct ConnectDialogue: TunnelDialogue {
    /// The proxy did not open the tunnel.
    struct Refusal: Error {
        let proxy: Proxy
        let goal: TunnelGoal
        let head: ResponseHead
        /// The value of `Proxy-Authorization` in the refused request.
        let sent: String?
    }

    private let proxy: Proxy
    private let goal: TunnelGoal
    private let authorization: String?
    private var scanner = HeadScanner()
    private var received: [UInt8] = []

    init(_ proxy: Proxy, to goal: TunnelGoal, authorization: String?) {
        self.proxy = proxy
        self.goal = goal
        self.authorization = authorization
    }

    func begin() -> [UInt8] {
        var lines = [
            "CONNECT \(self.goal) HTTP/1.1", "Host: \(self.goal)",
            "User-Agent: segdl/\(SegmentedDownloadVersion.string)",
        ]
        if let authorization { lines.append("Proxy-Authorization: \(authorization)") }
        return Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
    }

    /// A head with any 2xx status opens the tunnel, and its fields do not matter, because it has no body.
    mutating func read(_ bytes: some Sequence<UInt8>) throws -> TunnelStep {
        var rest = Array(bytes)
        while !rest.isEmpty {
            let (count, isEnd) = rest.withUnsafeBytes { self.scanner.scan($0) }
            self.received += rest.prefix(count)
            rest.removeFirst(count)
            guard isEnd else { return .waiting }
            switch self.scanner.ending {
            case .none: throw self.malformed
            case .interim: (self.scanner, self.received) = (HeadScanner(), [])
            case .final:
                guard let head = self.head else { throw self.malformed }
                guard (200...299).contains(head.status) else {
                    throw Refusal(proxy: self.proxy, goal: self.goal, head: head, sent: self.authorization)
                }
                // The peer behind the proxy waits for the first byte.
                guard rest.isEmpty else { throw self.malformed }
                return .open
            }
        }
        return .waiting
    }

    private var malformed: DownloadError {
        DownloadError(.protocol, "the proxy \(self.proxy) answered CONNECT with something else than an HTTP response")
    }

    /// The head that was received, read leniently: only a status and a few fields count.
    private var head: ResponseHead? {
        let lines = self.received.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        let words = lines.first?.split(separator: UInt8(ascii: " "), maxSplits: 2) ?? []
        guard words.count > 1, words[1].count == 3, let status = Int(String(decoding: words[1], as: UTF8.self)) else {
            return nil
        }
        var fields = HTTPFields()
        for line in lines.dropFirst() {
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let name = HTTPField.Name(String(decoding: parts[0], as: UTF8.self)) else {
                continue
            }
            let value = String(decoding: parts[1].trimmingFieldWhitespace, as: UTF8.self)
            fields.append(HTTPField(name: name, value: value))
        }
        return ResponseHead(status: status, fields: fields, received: SystemClock.date)
    }
}

extension ConnectDialogue.Refusal {
    /// The failure to report.
    var failure: DownloadError {
        let (status, host) = (self.head.status, "the proxy \(self.proxy)")
        if status == 407 { return AsyncHTTPClientTransport.proxyLoginFailure(self.head, of: self.proxy) }
        let location = self.head.fields[.location].map { ", leading to \($0.printable)," } ?? ""
        return DownloadError(
            .server, "\(host) answered \(status)\(location) instead of connecting to \(self.goal)",
            hint: location.isEmpty ? nil : "Open it in a browser: the network may want a login",
            status: status, retryAfter: RangeResponse.retryAfter(self.head)?.duration)
    }
}
