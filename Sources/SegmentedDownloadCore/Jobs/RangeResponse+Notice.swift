extension RangeResponse {
    /// What other processes should know of a refusal; nil unless it states how long to wait.
    package func notice(of host: HostKey, now: Duration) -> HostNotice? {
        guard case .refused(let status, let retryAfter?) = self, TransientStatus.refusals.contains(status),
            retryAfter.seconds > 0
        else { return nil }
        return HostNotice(
            .refusal, host: host, until: now + min(.seconds(retryAfter.seconds), ConcurrencyBudget.retryAfterMax))
    }
}
