/// The HTTP statuses after which another request may succeed. ``RetryPolicy`` says how often and how long it is made.
package enum TransientStatus {
    /// The statuses with which a server asks for another attempt, or that an overload or a restart of it causes (RFC
    /// 9110 §15, RFC 8470 §5.2, RFC 6585 §4).
    package static let all: Set = [408, 421, 425, 429, 500, 502, 503, 504]

    /// Those with which a server refuses one more request or connection while it serves others.
    static let refusals: Set = [429, 503]
}

extension DownloadError {
    /// Whether a server refused one more request or connection.
    var isRefusal: Bool { self.status.map { TransientStatus.refusals.contains($0) } ?? false }
}
