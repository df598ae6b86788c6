import SegmentedDownload
import SegmentedDownloadCore

/// One state of a disk after a power cut: what it claims, and what the next runs make of it.
struct OneFileTrial {
    /// What is noted during the runs. One thread uses it.
    private final class Notes: @unchecked Sendable {
        var flaw: String?
        var log: [String] = []
    }

    private let plot: OneFilePlot
    private let settled: DiskImage.Settled
    private let moment: OneFilePlot.Moment
    private let notes = Notes()

    init(_ plot: OneFilePlot, _ settled: DiskImage.Settled, _ moment: OneFilePlot.Moment) {
        (self.plot, self.settled, self.moment) = (plot, settled, moment)
    }

    var log: [String] { self.notes.log }

    /// What is wrong; nil if nothing is.
    func flaw() -> String? {
        do {
            let machine = self.machine(self.settled)
            let records = try OneFileRecords(self.plot.scene, on: machine)
            let least = try OneFileRecords(self.plot.scene, on: self.machine(self.moment.image.least))
            if let loss = records.loss(since: least, self.moment) { return loss }
            return self.runSequel(on: machine, records) ?? self.notes.flaw ?? self.rest(on: machine.disk)
        } catch let flaw as OneFileRecords.Flaw {
            return flaw.text
        } catch {
            return "\(error)"
        }
    }

    private func machine(_ settled: DiskImage.Settled) -> SharedFileScene.Machine {
        let machine = SharedFileScene.Machine(settled, seed: self.plot.seed)
        machine.disk.hasSeparateMachines = self.plot.scene.hasSeparateMachines
        return machine
    }

    /// Runs tasks until the file must be complete. Returns what is wrong with their endings.
    private func runSequel(on machine: SharedFileScene.Machine, _ records: OneFileRecords) -> String? {
        var scene = self.plot.scene
        // Fast: how the tasks share their time is drawn by the executor.
        (scene.rate, scene.chunkMax, scene.segments) = (1 << 16, 4096, 1)
        let starts = scene.shards.map { SharedFileScene.Start($0) }
        var round = UInt64(3)
        let run = { (scene: SharedFileScene, starts: [SharedFileScene.Start]) -> [String] in
            defer { round += 1 }
            let endings = scene.run(starts, on: machine, round: round) { self.note($0, records) }
            self.notes.log.append("then: \(endings)")
            return endings
        }
        var endings: [String]
        switch self.plot.sequel {
        case .together: endings = run(scene, starts)
        case .apart: endings = starts.flatMap { run(scene, [$0]) }
        case .withoutOne:
            scene.patience = .seconds(1)
            endings = run(scene, starts.filter { $0.shard != self.plot.victim })
        case .impatient:
            scene.patience = .milliseconds(1)
            let first = run(scene, starts)
            // A task whose range was completed by others meanwhile may fail. The same command then finds the file.
            let failed = zip(starts, first).filter { !SharedFileScene.isGood($0.1) }.map(\.0)
            scene.patience = nil
            endings = first.filter { SharedFileScene.isGood($0) } + failed.flatMap { run(scene, [$0]) }
        }
        return endings.allSatisfy { SharedFileScene.isGood($0) } ? nil : "the next runs end with \(endings)"
    }

    /// Checks that nothing is fetched that was durable.
    private func note(_ event: SharedFileScene.Event, _ records: OneFileRecords) {
        guard case .received(let window, let range, let shard) = event else { return }
        self.notes.log.append("task \(shard) received \(range) of \(window.part)")
        let name = OneFileRecords.name(of: window)
        let durable = records.durable(in: window, for: shard)
        guard let again = durable.first(where: { $0.overlaps(Int64(range.lowerBound)..<Int64(range.upperBound)) })
        else {
            return
        }
        self.notes.flaw = self.notes.flaw ?? "\(name) fetches bytes \(range) again, of which \(again) were durable"
    }

    /// What is wrong with the disk after all runs.
    private func rest(on disk: SimulatedDisk) -> String? {
        guard disk.names[SharedFileScene.name]?.bytes == self.plot.scene.version.bytes else {
            return "the next runs make no file or a wrong one"
        }
        let left = disk.names.keys.filter { $0 != SharedFileScene.name }.sorted() + disk.directories.keys.sorted()
        return left.isEmpty ? nil : "the next runs leave \(left.joined(separator: ", "))"
    }
}
