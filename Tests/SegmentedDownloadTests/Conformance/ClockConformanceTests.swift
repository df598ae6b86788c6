import SegmentedDownload
import Simulator
import Testing

@Suite("What every clock does")
struct ClockConformanceTests {
    enum Kind: CaseIterable, Sendable { case system, simulated }

    private static func run(
        _ kind: Kind, _ body: @escaping @Sendable (any EngineClock) async throws -> Void
    ) async throws {
        switch kind {
        case .system: try await body(SystemClock())
        case .simulated: try withSimulatedClock { try await body($0) }
        }
    }

    @Test("Time begins at zero and never goes back", arguments: Kind.allCases)
    func monotonic(kind: Kind) async throws {
        try await Self.run(kind) { clock in
            var last = Duration.zero
            for number in 0..<100 {
                let now = clock.now
                #expect(now >= last)
                last = now
                if number % 25 == 0 { try await clock.sleep(until: now + .milliseconds(1)) }
            }
            #expect(last >= .milliseconds(4))
        }
    }

    @Test("A sleep lasts until its time, and many at once each until their own", arguments: Kind.allCases)
    func sleeps(kind: Kind) async throws {
        try await Self.run(kind) { clock in
            let start = clock.now
            let isEarly = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<40 {
                    let time = start + .milliseconds(number * 7 % 40)
                    group.addTask {
                        try await clock.sleep(until: time)
                        return clock.now < time
                    }
                }
                return try await group.reduce(false) { $0 || $1 }
            }
            #expect(!isEarly)
        }
    }

    @Test("A sleep until an instant that has passed returns", arguments: Kind.allCases)
    func past(kind: Kind) async throws {
        try await Self.run(kind) { clock in
            try await clock.sleep(until: clock.now + .milliseconds(1))
            let before = clock.now
            for time in [before, .zero, .seconds(-3600)] { try await clock.sleep(until: time) }
            #expect(clock.now >= before)
            // Only simulated time stands still meanwhile.
            if kind == .simulated { #expect(clock.now == before) }
        }
    }

    @Test("A cancelled sleep ends with a CancellationError, and no other sleep does", arguments: Kind.allCases)
    func cancelled(kind: Kind) async throws {
        try await Self.run(kind) { clock in
            let start = clock.now
            let tomorrow = start + .seconds(86_400)
            try await withThrowingTaskGroup(of: Void.self) { others in
                others.addTask { try await clock.sleep(until: start + .milliseconds(20)) }
                let wereCancelled = await withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<3 {
                        group.addTask { await Self.isCancelled { try await clock.sleep(until: tomorrow) } }
                    }
                    // Whether or not they sleep already, they are cancelled.
                    for _ in 0..<10 { await Task.yield() }
                    group.cancelAll()
                    // This one begins in a cancelled task.
                    group.addTask { await Self.isCancelled { try await clock.sleep(until: tomorrow) } }
                    return await group.reduce(true) { $0 && $1 }
                }
                #expect(wereCancelled && clock.now < tomorrow)
                try await others.waitForAll()
            }
            #expect(clock.now >= start + .milliseconds(20))
        }
    }

    @Test("A sleep until a time that no clock reaches lasts until it is cancelled", arguments: Kind.allCases)
    func endless(kind: Kind) async throws {
        try await Self.run(kind) { clock in
            let isCancelled = await withTaskGroup(of: Bool.self) { group in
                for time in [Duration.seconds(Int64.max), .seconds(9_223_372_036), .seconds(1 << 40)] {
                    group.addTask { await Self.isCancelled { try await clock.sleep(until: time) } }
                }
                for _ in 0..<10 { await Task.yield() }
                group.cancelAll()
                return await group.reduce(true) { $0 && $1 }
            }
            #expect(isCancelled)
        }
    }

    @Test("The time of day is in seconds since 1970, and later than when this was written", arguments: Kind.allCases)
    func timeOfDay(kind: Kind) async throws {
        try await Self.run(kind) { clock in
            let before = clock.secondsSinceEpoch
            #expect(before >= 1_700_000_000 && before < 1 << 40)
            try await clock.sleep(until: clock.now + .milliseconds(1))
            if kind == .simulated {
                try await clock.sleep(until: clock.now + .seconds(3))
                #expect((3...4).contains(clock.secondsSinceEpoch - before))
            }
        }
    }

    /// Whether `body` throws a `CancellationError`.
    private static func isCancelled(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return false
        } catch {
            return error is CancellationError
        }
    }
}
