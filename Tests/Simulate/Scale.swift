import ArgumentParser
import SegmentedDownloadCore

/// Prints the cost of one event in the state machine of a large group.
struct Scale: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure the cost of an event in a group of very many downloads.")

    @Option(help: "Downloads in the group.") var downloads = 100_000
    @Option(help: "Files fetched at once.") var running = 5
    @Option(help: "Ticks to measure.") var ticks = 100

    func run() throws {
        var limits = GroupStateMachine.Limits()
        limits.downloads = self.running
        var machine = GroupStateMachine(limits: limits)
        var settings = DownloadSettings()
        settings.host = "host"
        let clock = ContinuousClock()
        var actions = 0
        let adding = clock.measure {
            for number in 0..<self.downloads {
                actions += machine.handle(.added(DownloadID(number), settings, seed: 1), now: .zero).count
            }
        }
        let ticking = clock.measure {
            for number in 0..<self.ticks {
                actions += machine.handle(.tick, now: .milliseconds(100 * number)).count
            }
        }
        // Cancels the last one while it waits: finding a download must not need a search through all.
        let telling = clock.measure {
            for _ in 0..<self.ticks {
                let id = DownloadID(self.downloads - 1)
                actions += machine.handle(.download(id, .pause), now: .seconds(60)).count
                actions += machine.handle(.download(id, .resume), now: .seconds(60)).count
            }
        }
        print(
            "\(self.downloads) downloads, \(self.running) running: \(adding / self.downloads) to add one, "
                + "\(ticking / self.ticks) a tick, \(telling / (2 * self.ticks)) an event, \(actions) actions, "
                + "\(MemoryLayout<DownloadStateMachine>.stride) bytes a machine")
    }
}
