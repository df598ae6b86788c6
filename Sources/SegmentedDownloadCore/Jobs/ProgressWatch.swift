/// For how long things have not changed, as far as their observer has seen.
package struct ProgressWatch<Key: Hashable & Sendable, Value: Hashable & Sendable>: Hashable, Sendable {
    private struct Observation: Hashable {
        var value: Value
        var since: Duration
    }

    private var observations: [Key: Observation] = [:]

    package init() {}

    /// Records what a thing is like now, and returns for how long it has been so. Zero at the first observation.
    package mutating func idleTime(of key: Key, _ value: Value, now: Duration) -> Duration {
        if let known = self.observations[key], known.value == value { return now - known.since }
        self.observations[key] = Observation(value: value, since: now)
        return .zero
    }
}
