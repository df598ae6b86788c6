/// Limits on what one connection may receive before it is written.
package struct ReceiveLimits: Hashable, Sendable {
    /// The maximum number of bytes in memory; `nil` for no limit.
    package var memory: Int?
    /// The maximum number of bytes per read; `nil` for no limit. Under a rate limit longer reads would arrive in
    /// bursts.
    package var chunkLength: Int?

    package init(memory: Int? = nil, chunkLength: Int? = nil) {
        self.memory = memory
        self.chunkLength = chunkLength
    }

    /// The stricter of both limits.
    func stricter(_ other: ReceiveLimits) -> ReceiveLimits {
        ReceiveLimits(
            memory: Self.min(self.memory, other.memory), chunkLength: Self.min(self.chunkLength, other.chunkLength))
    }

    private static func min(_ one: Int?, _ other: Int?) -> Int? {
        [one, other].compactMap { $0 }.min()
    }
}

/// The limits of all groups that share a transport. Any connection may serve any group, so the strictest limit applies
/// to all.
package struct SharedReceiveLimits: Sendable {
    /// One entry for each group.
    private var limits: [(owner: ObjectIdentifier, limits: ReceiveLimits)] = []

    package init() {}

    package private(set) var strictest = ReceiveLimits()

    /// Sets or removes an owner's limit.
    package mutating func update(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {
        self.limits.removeAll { $0.owner == owner }
        if let limits { self.limits.append((owner, limits)) }
        self.strictest = self.limits.reduce(ReceiveLimits()) { $0.stricter($1.limits) }
    }
}
