/// How often the first request was made to a source, and with what result.
struct ProbeAttempts: Hashable, Sendable {
    /// Those that failed.
    var failures = 0
    var retryAt: Duration = .zero
    /// Whether the origin has answered this download, or another one of the group.
    var hasContact = false
    /// Whether the host had other requests when it last refused this one. It serves them, or may.
    var isCrowded = false
    /// Whether it was reported that the source has not answered yet.
    var hasReportedSilence = false
    /// When the first one was made, to any source.
    var beganAt: Duration?

    /// A failed one, to be judged.
    func request(after failure: DownloadError, isPaced: Bool = false, now: Duration) -> FailedRequest {
        var request = FailedRequest(.first, failure, failures: self.failures)
        (request.hadContact, request.isPaced) = (self.hasContact, isPaced)
        request.others = self.isCrowded ? .silent : .none
        request.waited = now - (self.beganAt ?? now)
        return request
    }
}
