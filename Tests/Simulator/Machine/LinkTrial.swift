import Foundation
import SegmentedDownloadCore

/// One file over one random ``Link``, with the number of connections chosen by the engine.
package struct LinkTrial {
    private static let step: Duration = .milliseconds(5)

    package let model: Link.Model
    package let length: Int64
    /// Seconds from the start to the last byte.
    package private(set) var time = Double.infinity
    /// Seconds that the best downloader takes, see ``Link/optimum(_:length:step:seed:)``.
    package private(set) var optimum = 0.0
    /// Bytes received twice, as a fraction of the file.
    package private(set) var duplicates = 0.0
    /// Bytes in flight to connections when they were closed, as a fraction of the file.
    package private(set) var abandoned = 0.0
    package private(set) var connectionsPeak = 0
    package private(set) var refusals = 0
    package private(set) var violations: [String] = []

    /// The time as a multiple of the optimum.
    package var ratio: Double { self.time / self.optimum }

    /// The events and actions, if `isTracing`.
    package private(set) var trace: [String] = []

    package init(seed: UInt64, isTracing: Bool = false) {
        var generator = SplitMix64(seed: seed)
        let model = Link.Model(using: &generator)
        let time = 2 * pow(30, Double.random(in: 0...1, using: &generator))
        let rate = model.rate(min(ConcurrencyController.automaticMaximum, model.servedMax))
        self.init(model, length: max(Int64(rate * time), 1 << 20), seed: generator.next(), isTracing: isTracing)
    }

    package init(_ model: Link.Model, length: Int64, seed: UInt64, isTracing: Bool = false) {
        self.model = model
        self.length = length
        var limits = GroupStateMachine.Limits()
        limits.connectionsPerHost = ConcurrencyController.automaticMaximum
        var world = SharingWorld(
            seed: seed, limits: limits, link: Link(model, seed: seed), step: Self.step, isTracing: isTracing)
        world.add(length, segments: .automatic)
        world.runToEnd(patience: .seconds(3600))
        self.optimum = Link.optimum(model, length: length, step: Self.step.inSeconds, seed: seed)
        self.time = world.downloads[0].receivedAt?.inSeconds ?? .infinity
        self.duplicates = Double(world.duplicated) / Double(length)
        self.abandoned = Double(world.abandoned) / Double(length)
        self.connectionsPeak = world.connectionsPeak
        self.refusals = world.refusals
        self.violations = world.violations
        self.trace = world.trace
    }
}
