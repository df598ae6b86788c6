/// What a download has in every phase: its settings and sources, and what requests are numbered and delayed with.
struct DownloadContext: Hashable, Sendable {
    var settings: DownloadSettings
    var sources: SourceTable
    var generator: SplitMix64
    private var leaseNext = 0

    init(settings: DownloadSettings, sources: SourceTable? = nil, seed: UInt64) {
        self.settings = settings
        self.sources = sources ?? SourceTable(hosts: settings.hosts)
        self.generator = SplitMix64(seed: seed)
    }

    /// A number that no request of the download has had.
    mutating func makeLease() -> LeaseID {
        defer { self.leaseNext += 1 }
        return LeaseID(self.leaseNext)
    }

    /// What follows a failed request.
    mutating func decision(on request: FailedRequest) -> RetryDecision {
        self.settings.retry.decision(on: request, using: &self.generator)
    }
}
