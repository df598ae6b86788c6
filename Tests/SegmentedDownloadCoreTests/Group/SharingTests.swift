import SegmentedDownloadCore
import Simulator
import Testing

@Suite("Sharing connections and bytes")
struct SharingTests {
    private static func limits(_ connections: Int, perHost: Int = 64, downloads: Int = 8) -> GroupStateMachine.Limits {
        var limits = GroupStateMachine.Limits()
        limits.connections = connections
        limits.connectionsPerHost = perHost
        limits.downloads = downloads
        return limits
    }

    private static let gibibyte: Int64 = 1 << 30

    // MARK: Fairness

    @Test("One of priority 1.0 beside three of 0.25 at full budget has its share of connections within two seconds")
    func newcomer() {
        var world = SharingWorld(seed: 1, limits: Self.limits(24))
        for _ in 0..<3 { world.add(100 * Self.gibibyte, priority: 0.25, segments: .exactly(24)) }
        world.run(for: .seconds(5))
        #expect((0..<3).map { world.connections($0) } == [8, 8, 8])
        world.add(100 * Self.gibibyte, priority: 1, segments: .exactly(24))
        world.run(for: .seconds(2))
        var worst = 1.0
        world.run(for: .seconds(10)) { world in
            let shares = (0..<4).map { Double(world.connections($0)) }
            worst = min(worst, SharingWorld.fairness(shares, weights: [0.25, 0.25, 0.25, 1]))
        }
        #expect(worst >= 0.95)
        #expect(world.violations == [])
    }

    @Test("With a rate limit it also gets its share of the bytes", arguments: [1 << 20, 100 << 20] as [Int64])
    func newcomerUnderRate(rate: Int64) {
        var world = SharingWorld(seed: 1, limits: Self.limits(12))
        world.update(bytesPerSecond: rate)
        for _ in 0..<3 { world.add(100 * Self.gibibyte, priority: 0.25, segments: .exactly(4)) }
        world.run(for: .seconds(5))
        world.add(100 * Self.gibibyte, priority: 1, segments: .exactly(4))
        world.run(for: .seconds(2))
        for _ in 0..<5 {
            let before = world.downloads.map(\.bytes)
            world.run(for: .seconds(2))
            let shares = zip(world.downloads, before).map { Double($0.bytes - $1) }
            #expect(SharingWorld.fairness(shares, weights: [0.25, 0.25, 0.25, 1]) >= 0.95)
        }
        #expect(world.violations == [])
    }

    @Test("With any weights, every download has its share two seconds after a change", arguments: UInt64(0)..<20)
    func anyWeights(seed: UInt64) {
        var trial = SharingTrial(seed: seed)
        let violations = trial.run()
        #expect(violations == [], "replay with \(seed)")
    }

    @Test("Without changes hardly any connection is moved", arguments: UInt64(0)..<20)
    func noChurn(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var world = SharingWorld(seed: seed, limits: Self.limits(Int.random(in: 3...20, using: &generator)))
        for _ in 0..<Int.random(in: 2...6, using: &generator) {
            world.add(
                2 * Self.gibibyte, priority: Double.random(in: 0.1...1, using: &generator),
                segments: .exactly(Int.random(in: 1...16, using: &generator)))
        }
        world.run(for: .seconds(5))
        let before = world.revocations
        world.run(for: .seconds(60))
        // One every twenty seconds at most, to even out shares after segments end.
        #expect(world.revocations - before <= 3, "replay with \(seed)")
    }

    @Test("A file that starts gets a connection at once, even if larger files have them all")
    func firstConnection() {
        var world = SharingWorld(seed: 1, limits: Self.limits(4))
        for _ in 0..<2 { world.add(100 * Self.gibibyte) }
        world.run(for: .seconds(5))
        #expect(world.connectionsOpen == 4)
        world.add(64 << 10, priority: 0.01)
        world.run(for: .seconds(1))
        #expect(world.downloads[2].conclusion?.file != nil)
    }

    @Test("A thousand small files do not wait for three large ones, and cost them hardly a connection")
    func fastLane() {
        var world = SharingWorld(seed: 1, limits: Self.limits(12, downloads: 5))
        for _ in 0..<3 { world.add(100 * Self.gibibyte) }
        world.run(for: .seconds(5))
        let before = world.revocations
        for _ in 0..<1000 { world.add(64 << 10, segments: .exactly(4)) }
        world.run(for: .seconds(200))
        #expect(world.downloads.dropFirst(3).allSatisfy { $0.conclusion?.file != nil })
        #expect(world.revocations - before <= 20)
        #expect((0..<3).allSatisfy { world.connections($0) >= 3 })
        #expect(world.violations == [])
    }

    @Test("Started files complete before another one of the same priority starts")
    func startedFirst() {
        var world = SharingWorld(seed: 1, limits: Self.limits(4, downloads: 2))
        for _ in 0..<6 { world.add(20 << 20) }
        world.runToEnd(patience: .seconds(300))
        #expect(world.violations == [])
        let starts = world.downloads.compactMap(\.startedAt)
        let ends = world.downloads.compactMap(\.concludedAt)
        for number in 2..<6 {
            #expect(ends.count { $0 <= starts[number] } >= number - 1)
        }
    }

    @Test("No more files start than there are connections")
    func noUselessStart() {
        var world = SharingWorld(seed: 1, limits: Self.limits(2, downloads: 8))
        for _ in 0..<8 { world.add(100 << 20) }
        world.run(for: .seconds(5))
        #expect(world.downloads.count { $0.startedAt != nil } == 2)
    }

    // MARK: Limits that change

    @Test("A lower limit of connections applies at once, and all files complete", arguments: UInt64(0)..<10)
    func lowered(seed: UInt64) {
        var world = SharingWorld(seed: seed, limits: Self.limits(16))
        for _ in 0..<3 { world.add(64 << 20) }
        world.run(for: .seconds(2))
        #expect(world.connectionsOpen == 16)
        world.update(Self.limits(3))
        world.run(for: .milliseconds(600))
        #expect(world.connectionsOpen <= 3)
        #expect((0..<3).allSatisfy { world.connections($0) == 1 })
        world.runToEnd(patience: .seconds(600))
        #expect(world.violations == [])
        #expect(world.downloads.allSatisfy { $0.bytes == $0.length })
    }

    @Test("A higher limit of connections takes effect at once")
    func raised() {
        var world = SharingWorld(seed: 1, limits: Self.limits(2))
        world.add(Self.gibibyte)
        world.run(for: .seconds(2))
        #expect(world.connectionsOpen == 2)
        world.update(Self.limits(12))
        world.run(for: .seconds(2))
        #expect(world.connectionsOpen == 12)
    }

    @Test("A lower limit for one host affects no other host")
    func loweredPerHost() {
        var world = SharingWorld(seed: 1, limits: Self.limits(16))
        for host in ["a", "b"] { world.add(Self.gibibyte, segments: .exactly(8), host: host) }
        world.run(for: .seconds(2))
        world.update(Self.limits(16, perHost: 6))
        world.run(for: .milliseconds(600))
        #expect(["a", "b"].map { world.connectionsOpen(host: $0) } == [6, 6])
        #expect(world.revocations == 4)
    }

    @Test("A lower limit of files pauses no started download and starts no other")
    func loweredDownloads() {
        var world = SharingWorld(seed: 1, limits: Self.limits(8, downloads: 3))
        for length in [10, 20, 60, 10] as [Int64] { world.add(length << 20, segments: .exactly(2)) }
        world.run(for: .seconds(1))
        world.update(Self.limits(8, downloads: 1))
        world.run(for: .seconds(15))
        #expect(world.downloads[3].startedAt == nil)
        #expect(world.revocations == 0)
        world.runToEnd(patience: .seconds(100))
        #expect(world.violations == [])
        let (last, third) = (world.downloads[3].startedAt, world.downloads[2].concludedAt)
        #expect((last ?? .zero) >= (third ?? .seconds(1 << 20)))
    }

    @Test("A running file's number of connections can be lowered and raised")
    func segments() {
        var world = SharingWorld(seed: 1, limits: Self.limits(16))
        world.add(Self.gibibyte, segments: .exactly(8))
        world.run(for: .seconds(2))
        #expect(world.connectionsOpen == 8)
        world.update(0, segments: .exactly(2))
        world.run(for: .milliseconds(600))
        #expect(world.connectionsOpen == 2)
        world.update(0, segments: .exactly(6))
        world.run(for: .seconds(1))
        #expect(world.connectionsOpen == 6)
    }

    @Test("A connection that is nearly done may complete when the limit is lowered")
    func nearlyDone() {
        var world = SharingWorld(seed: 1, limits: Self.limits(4))
        // Four segments of 1 MiB at 1 MiB/s: after 0.9 s each has a tenth of a second left.
        world.add(4 << 20, segments: .exactly(4))
        while world.downloads[0].bytes < (4 << 20) * 9 / 10 { world.run(for: .milliseconds(10)) }
        world.update(Self.limits(1))
        world.runToEnd(patience: .seconds(10))
        #expect(world.violations == [])
        #expect(world.revocations == 0)
    }

    @Test("An urgent file that waits is begun before those that waited longer")
    func priorityOfQueued() {
        var world = SharingWorld(seed: 1, limits: Self.limits(4, downloads: 1))
        for _ in 0..<20 { world.add(1 << 20, priority: 0.25) }
        world.run(for: .milliseconds(100))
        world.update(15, priority: 1)
        world.runToEnd(patience: .seconds(200))
        let order = world.downloads.sorted { ($0.startedAt ?? .zero) < ($1.startedAt ?? .zero) }.map(\.id.rawValue)
        #expect(order.firstIndex(of: 15).map { $0 <= 2 } == true)
    }
}
