extension RangeResponse {
    /// What other processes should know of a refusal; nil unless it states how long to wait, and downloads wait so long.
    package func notice(of host: HostKey, now: Duration) -> HostNotice? {
        guard case .refused(let status, let retryAfter?) = self, TransientStatus.refusals.contains(status),
            retryAfter.seconds > 0, retryAfter.duration <= ConcurrencyBudget.retryAfterMax
        else { return nil }
        return HostNotice(.refusal, host: host, until: now + retryAfter.duration)
    }
}
