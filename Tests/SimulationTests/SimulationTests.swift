import Simulator
import TestSupport
import Testing

/// Serialized, because the other tests run at the same time.
@Suite("The whole engine in a simulated world", .serialized)
struct SimulationTests {
    /// Each argument runs this many seeds: few, because without optimization they are a hundred times slower. `.ci/run`
    /// runs thousands.
    private static let seedsPerArgument: UInt64 = 5

    private static func run(
        _ seed: UInt64, faults: Faults = .all, usesMemory: Bool? = nil
    ) async throws -> Simulation.Report {
        try await aside {
            var simulation = try Simulation(seed: seed, faults: faults, usesMemory: usesMemory)
            return simulation.run()
        }
    }

    @Test("With any faults, no run completes with a wrong file, and every download ends", arguments: UInt64(0)..<8)
    func survives(block: UInt64) async throws {
        for seed in (block * Self.seedsPerArgument)..<((block + 1) * Self.seedsPerArgument) {
            let report = try await Self.run(seed)
            #expect(report.violations.isEmpty, "\(report.replay)")
        }
    }

    @Test(
        "Worlds that once were wrong are not again",
        arguments: [
            4032, 8574, 12_859, 45_547, 48_401, 56_257, 59_115, 75_830, 96_541, 106_617, 189_812, 208_476, 216_676,
            219_477,
        ] as [UInt64]
    )
    func onceWrong(seed: UInt64) async throws {
        // When they were wrong, every part was on disk, and nothing was stated about the bytes.
        for usesMemory in [false, true] {
            let report = try await Self.run(seed, faults: .all.subtracting(.statements), usesMemory: usesMemory)
            #expect(report.violations.isEmpty, "\(report.replay), in memory: \(usesMemory)")
        }
    }

    @Test("Without faults no byte is fetched twice", arguments: UInt64(0)..<12)
    func faultless(seed: UInt64) async throws {
        let report = try await aside {
            var simulation = try Simulation(seed: seed, faults: [])
            return simulation.run()
        }
        #expect(report.violations.isEmpty, "\(report.replay)")
    }

    @Test("The same seed is the same run", arguments: UInt64(1000)..<1006)
    func replays(seed: UInt64) async throws {
        let (once, again) = (try await Self.run(seed), try await Self.run(seed))
        #expect(once == again)
    }

    @Test(
        "With kills and power cuts between any two steps, the service's queue loses and doubles no entry",
        arguments: UInt64(0)..<4)
    func queue(block: UInt64) async throws {
        for seed in (block * 10)..<((block + 1) * 10) {
            let report = try await aside {
                var simulation = QueueSimulation(seed: seed)
                return simulation.run()
            }
            #expect(report.violations.isEmpty, "segdl-simulate queue --first \(seed) --count 1 --trace")
        }
    }

    @Test("Worlds of the queue that once were wrong are not again", arguments: [34, 192, 4419, 122_161] as [UInt64])
    func queueOnceWrong(seed: UInt64) async throws {
        let report = try await aside {
            var simulation = QueueSimulation(seed: seed)
            return simulation.run()
        }
        #expect(report.violations.isEmpty, "segdl-simulate queue --first \(seed) --count 1 --trace")
    }

    @Test("The same seed is the same run of the queue", arguments: UInt64(1000)..<1004)
    func queueReplays(seed: UInt64) async throws {
        let reports = try await aside {
            var (once, again) = (QueueSimulation(seed: seed), QueueSimulation(seed: seed))
            return [once.run(), again.run()]
        }
        #expect(reports[0] == reports[1])
    }

    @Test("Every order of events in a small world ends well", arguments: [false, true])
    func small(resumes: Bool) async throws {
        let (isComplete, violation) = try await aside {
            let exploration = Exploration(of: SmallWorld(faults: 0, resumes: resumes), statesMax: 1_000_000)
            return (exploration.isComplete, exploration.violation?.0)
        }
        #expect(isComplete)
        #expect(violation == nil)
    }

    @Test(
        "After a power cut in any run of a job, the records have every entry that was durable and none that was not finished",
        arguments: UInt64(0)..<12)
    func jobPowerCuts(seed: UInt64) async throws {
        let (violations, states) = try await aside {
            var crashes = JobCrashStates(seed: seed, statesMax: 400)
            crashes.run()
            return (crashes.violations, crashes.states)
        }
        #expect(violations == [])
        #expect(states > 0)
    }

    @Test(
        "After a power cut while tasks fetch one file, nothing is claimed that is not there, and the next runs make the file",
        arguments: UInt64(0)..<24)
    func oneFilePowerCuts(seed: UInt64) async throws {
        let (violations, states) = try await aside {
            var crashes = OneFileCrashStates(seed: seed, statesMax: 20)
            crashes.run()
            return (crashes.violations, crashes.states)
        }
        #expect(violations == [])
        #expect(states == 20)
    }

    @Test(
        "After a power cut before any operation, in any state, the same command completes the file",
        arguments: UInt64(0)..<4)
    func powerCuts(seed: UInt64) async throws {
        let (violations, states) = try await aside {
            var crashes = try CrashStates(seed: seed, statesMax: 60)
            crashes.run()
            return (crashes.violations, crashes.states)
        }
        #expect(violations == [])
        #expect(states > 0)
    }

    @Test(
        "Without syncs, a file that a power cut left damaged after its download is not reported as complete",
        arguments: UInt64(0)..<8)
    func unsyncedPowerCuts(seed: UInt64) async throws {
        let (violations, states) = try await aside {
            var crashes = try CrashStates(seed: seed, statesMax: 400, isSynced: false)
            crashes.run()
            return (crashes.violations, crashes.states)
        }
        #expect(violations == [])
        #expect(states > 0)
    }

    @Test(
        "The tasks of a fleet are rarely refused by an origin with limits, give up no file, and keep its limit used",
        arguments: [FleetScenario.Limit.rate, .overload])
    func fleet(limit: FleetScenario.Limit) async throws {
        let report = try await aside {
            // Few enough for seconds without optimization. Tails weigh more the fewer files there are.
            var simulation = FleetSimulation(FleetScenario(limit, shards: 100, files: 10), seed: 1)
            return simulation.run()
        }
        #expect(report.violations == [])
        #expect(report.filesFailed == 0)
        #expect(report.refusedPerEpisode <= 2)
        #expect(report.fairness >= 0.9)
        #expect(report.ratio <= 1.5)
    }

    @Test("The tasks of a node take turns at an origin that serves two connections of each address")
    func fleetTurns() async throws {
        let report = try await aside {
            var simulation = FleetSimulation(FleetScenario(.clientConnections, shards: 50, files: 30), seed: 1)
            return simulation.run()
        }
        #expect(report.violations == [])
        #expect(report.filesFailed == 0)
        #expect(report.refusedPerEpisode <= 2)
        #expect(report.fairness > 0.95)
        #expect(report.ratio <= 1.5)
    }

    @Test("The same seed is the same run of a fleet in which nodes die")
    func fleetReplays() async throws {
        let reports = try await aside {
            var scenario = FleetScenario(.overload, shards: 20, files: 9)
            scenario.deaths = 0.6
            var (once, again) = (FleetSimulation(scenario, seed: 7), FleetSimulation(scenario, seed: 7))
            return [once.run(), again.run()]
        }
        #expect(reports[0] == reports[1])
        #expect(reports[0].deaths > 0)
        #expect(reports[0].filesFailed == 0 && reports[0].violations == [])
    }
}
