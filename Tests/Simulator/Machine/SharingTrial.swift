import SegmentedDownloadCore

/// Downloads with random weights, whose weights and limits change. Two seconds after each change every download must
/// have its share.
package struct SharingTrial {
    /// The least that Jain's index may be.
    package static let fairnessMin = 0.95

    /// How long after a change shares may be uneven, and how long they are measured then.
    private static let settling: Duration = .seconds(2)
    private static let observation: Duration = .seconds(3)

    private var generator: SplitMix64
    private var world: SharingWorld
    private var limits: GroupStateMachine.Limits
    private var weights: [Double]
    private let isLimited: Bool
    /// The lowest index measured.
    package private(set) var fairness = 1.0
    package private(set) var violations: [String] = []

    package init(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let levels = [0.25, 0.5, 0.75, 1]
        let weights = (0..<Int.random(in: 2...6, using: &generator)).map { _ in
            levels.randomElement(using: &generator) ?? 1
        }
        self.isLimited = Int.random(in: 0..<3, using: &generator) == 0
        let limits = Self.limits(for: weights.count, using: &generator)
        self.limits = limits
        self.world = SharingWorld(seed: generator.next(), limits: limits)
        self.weights = weights
        self.generator = generator
    }

    /// Draws limits under which every share is at least two connections: fewer cannot be divided fairly.
    private static func limits(for count: Int, using generator: inout SplitMix64) -> GroupStateMachine.Limits {
        var limits = GroupStateMachine.Limits()
        limits.connections = count * 8 + Int.random(in: 0...16, using: &generator)
        limits.connectionsPerHost = count * 8 + Int.random(in: 0...16, using: &generator)
        limits.downloads = count
        return limits
    }

    /// Runs to the end; returns the violations.
    package mutating func run() -> [String] {
        if self.isLimited {
            self.world.update(bytesPerSecond: 1 << Int64.random(in: 18...26, using: &self.generator))
        }
        for weight in self.weights {
            self.world.add(1 << 40, priority: weight, segments: .exactly(64))
            self.world.run(for: .milliseconds(Int.random(in: 10...3000, using: &self.generator)))
        }
        for _ in 0..<3 {
            self.change()
            self.world.run(for: Self.settling)
            self.observe()
        }
        return self.violations + self.world.violations
    }

    private mutating func change() {
        if Bool.random(using: &self.generator) {
            self.limits = Self.limits(for: self.weights.count, using: &self.generator)
            self.world.update(self.limits)
        } else {
            let changed = Int.random(in: 0..<self.weights.count, using: &self.generator)
            self.weights[changed] = [0.25, 0.5, 0.75, 1].randomElement(using: &self.generator) ?? 1
            self.world.update(changed, priority: self.weights[changed])
        }
    }

    private mutating func observe() {
        let allowed = min(self.limits.connections, self.limits.connectionsPerHost)
        if self.world.connectionsOpen != allowed {
            self.violations.append(
                "\(self.world.connectionsOpen) connections of \(allowed) at \(self.world.now)")
        }
        let (weights, before) = (self.weights, self.world.downloads.map(\.bytes))
        var worst = 1.0
        self.world.run(for: Self.observation) { world in
            let shares = weights.indices.map { Double(world.connections($0)) }
            worst = min(worst, SharingWorld.fairness(shares, weights: weights))
        }
        if self.isLimited {
            let shares = zip(self.world.downloads, before).map { Double($0.bytes - $1) }
            worst = min(worst, SharingWorld.fairness(shares, weights: weights))
        }
        self.fairness = min(self.fairness, worst)
        if worst < Self.fairnessMin {
            let shares = weights.indices.map { self.world.connections($0) }
            self.violations.append("Jain's index is \(worst), \(shares) for \(weights) at \(self.world.now)")
        }
    }
}
