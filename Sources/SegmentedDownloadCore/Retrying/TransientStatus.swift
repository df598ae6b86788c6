/// The HTTP statuses after which another request may succeed. ``RetryPolicy`` says how often and how long it is made.
package enum TransientStatus {
    /// Those below 500 with which a server asks for another attempt (RFC 9110 §15, RFC 8470 §5.2, RFC 6585 §4). 202: archives
    /// and tape stores send it until the file is there.
    private static let ofRequest: Set = [202, 408, 421, 425, 429]

    /// Those from 500 on that the same request gets each time: the server or a network in between does not support it, or has
    /// a wrong configuration (RFC 9110 §15.6, RFC 2295 §8.1, RFC 5842 §7.2, RFC 2774 §7, RFC 6585 §6).
    private static let lasting: Set = [501, 505, 506, 508, 510, 511]

    /// Those with which a server refuses one more request or connection while it serves others. 509 and 529 are not registered:
    /// servers send them for too much traffic and too many requests.
    package static let refusals: Set = [429, 503, 509, 529]

    /// Whether an overload, a restart or a proxy that does not reach the server may be the cause. Of the unregistered statuses
    /// from 500 on, which content delivery networks send, that is assumed (RFC 9110 §15: an unknown one is treated as 500).
    package static func contains(_ status: Int) -> Bool {
        self.ofRequest.contains(status) || 500...599 ~= status && !self.lasting.contains(status)
    }
}

extension DownloadError {
    /// Whether a server refused one more request or connection.
    var isRefusal: Bool { self.status.map { TransientStatus.refusals.contains($0) } ?? false }
}
