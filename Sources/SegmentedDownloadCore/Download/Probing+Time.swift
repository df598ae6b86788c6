/// Decisions of the first request that depend on time.
extension Probing {
    /// Closes the connection if the head takes too long, and reports once that a server has not answered yet.
    mutating func tick(patience: Duration, host: String, now: Duration) -> [DownloadAction] {
        guard let lease = self.lease, lease.revocation == nil else { return [] }
        let waited = now - lease.startedAt
        if waited > patience {
            self.lease?.revocation = .headTooSlow(patience)
            return [.revoke(lease.id)]
        }
        guard waited > HeadPatience.ofAdditional, !self.attempts.hasReportedSilence else { return [] }
        self.attempts.hasReportedSilence = true
        return [.report(.note("\(host) has not answered yet; segdl waits for up to \(patience.inSeconds) s"))]
    }
}
