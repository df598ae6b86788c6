import SegmentedDownload

/// The result of a ``FleetSimulation``.
package struct FleetReport: Hashable, Sendable {
    /// Seconds until the last shard has ended.
    package fileprivate(set) var time = 0.0
    /// Seconds until the last file was complete.
    package fileprivate(set) var timeCompleted = 0.0
    /// See ``FleetScenario/optimum``.
    package fileprivate(set) var optimum = 0.0
    /// Refused requests. A connection that is refused counts as one.
    package fileprivate(set) var refused = 0
    package fileprivate(set) var served = 0
    /// Limit episodes of all shards. An episode of a shard begins when a request of it is refused, and ends when one is
    /// served.
    package fileprivate(set) var episodes = 0
    /// Jain's index over the times until each shard has ended. All have the same work.
    package fileprivate(set) var fairness = 1.0
    /// Jain's index over the bytes that each shard has when half of all bytes are there.
    package fileprivate(set) var fairnessHalfway = 1.0
    /// Files that a shard has given up.
    package fileprivate(set) var filesFailed = 0
    package fileprivate(set) var deaths = 0
    /// The most requests that the origin received in one second.
    package fileprivate(set) var requestsPeak = 0
    package fileprivate(set) var violations: [String] = []

    /// The time as a multiple of the fluid optimum.
    package var ratio: Double { self.time / self.optimum }
    /// Refused requests per shard and limit episode.
    package var refusedPerEpisode: Double {
        self.episodes == 0 ? 0 : Double(self.refused) / Double(self.episodes)
    }
    /// Refused requests for each one served.
    package var refusedPerServed: Double { self.served == 0 ? 0 : Double(self.refused) / Double(self.served) }

    init(
        _ scenario: FleetScenario, shards: [FleetShard], time: Double, timeCompleted: Double, fairnessHalfway: Double,
        deaths: Int, requestsPeak: Int, violations: [String]
    ) {
        self.time = time
        self.timeCompleted = timeCompleted
        self.optimum = scenario.optimum
        self.fairnessHalfway = fairnessHalfway
        let times = shards.map { Double($0.finishedAt ?? .max) }
        self.fairness = SharingWorld.fairness(times, weights: times.map { _ in 1 })
        self.deaths = deaths
        self.requestsPeak = requestsPeak
        self.violations = violations
        for shard in shards {
            self.refused += shard.refused
            self.served += shard.served
            self.episodes += shard.episodes
            self.filesFailed += shard.filesFailed
        }
    }
}
