import SegmentedDownloadCore

extension DownloadClient {
    /// Calls `body`, and calls it again after a failure that may pass, as often and after the same times as a download
    /// of the request.
    ///
    /// For everything that asks a server by itself: ``probe(_:)``, ``text(of:lengthMaximum:)`` and
    /// ``bytes(of:lengthMaximum:)`` send one request.
    ///
    /// - Parameter note: Called before each wait with the failure, the number of failures, and the time to wait.
    /// - Throws: The last error of `body`. One that asks to wait longer than ``RetryPolicy/retryAfterMax`` is thrown at
    ///   once. The code is `cancelled` if the task is cancelled.
    package func repeating<Answer>(
        _ request: DownloadRequest, note: (DownloadError, _ attempt: Int, _ delay: Duration) -> Void,
        _ body: () async throws(DownloadError) -> Answer
    ) async throws(DownloadError) -> Answer {
        var settings = DownloadSettings(request.options)
        settings.isOfJob = self.configuration.limits.tasks > 1
        let policy = settings.retry
        var generator = SplitMix64(seed: self.seed)
        let beganAt = self.clock.now
        var failed = FailedRequest(.first, DownloadError(.internal, ""), failures: 0)
        failed.hadContact = false
        while true {
            let error: DownloadError
            do throws(DownloadError) {
                return try await body()
            } catch let failure {
                error = failure
            }
            failed.failure = error
            failed.hadContact = failed.hadContact || error.status != nil
            failed.waited = self.clock.now - beganAt
            guard case .again(let delay, _) = policy.decision(on: failed, using: &generator) else { throw error }
            failed.failures += 1
            note(error, failed.failures, delay)
            do {
                try await self.clock.sleep(until: self.clock.now + delay)
            } catch {
                throw DownloadError(wrapping: error)
            }
        }
    }
}
