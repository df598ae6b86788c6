import ArgumentParser
import Foundation
import Origin
import SegmentedDownloadCore
import Synchronization
import TestSupport

/// Cuts the power of a real ext4 at random moments. The bytes reported as durable survive, and the next run completes.
struct Power: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Cut the power of an ext4 file system on a loop device at random moments (root only).")

    @OptionGroup var options: LabOptions

    @Option(help: "Power cuts.")
    var cuts = 320

    /// A power cut whose properties follow from a seed.
    struct Cut: Sendable, CustomStringConvertible {
        enum Moment: String, CaseIterable, Sendable {
            /// Somewhere in the middle of a download.
            case first
            /// After a pause, while the download is resumed.
            case resumed
            /// Around the last bytes, when the file is synced and renamed.
            case finishing
            /// Right after the command has reported completion.
            case finished
            /// After the first checkpoint of a slow download.
            case checkpointed
            /// Some seconds after a run without syncs has reported completion: names and attributes are on disk, data is not.
            case unsynced
        }

        var seed: UInt64
        var moment: Moment
        /// Whether the process ends with the disk, or sees the disk fail.
        var killsProcess: Bool
        var scenario: Scenario
        var fraction: Double

        init(seed: UInt64, index: Int) {
            var generator = SplitMix64(seed: seed)
            self.seed = seed
            // Slow downloads and waits for the journal take 8 s each; one in sixteen limits their share of the time.
            let quick: [Moment] = [.first, .resumed, .finishing, .finished, .resumed, .finishing]
            self.moment =
                switch index % 16 {
                case 7: .checkpointed
                case 15: .unsynced
                default: quick.randomElement(using: &generator) ?? .first
                }
            self.killsProcess = Bool.random(using: &generator)
            self.fraction = Double.random(in: 0..<1, using: &generator)
            // A short file is fetched too fast to be paused in its middle.
            let sizes = (self.moment == .resumed ? [] : ["64K", "900K"]) + ["3M", "9M", "12M"]
            let size = self.moment == .checkpointed ? "24M" : sizes.randomElement(using: &generator) ?? ""
            self.scenario = Scenario(
                name: "\(self.moment)", size: size,
                options: ["-s", "3"] + (self.moment == .unsynced ? ["--fsync", "none"] : []))
        }

        var description: String {
            "\(self.moment) \(self.scenario.size), seed \(self.seed)\(self.killsProcess ? ", with the process" : "")"
        }
    }

    func run() async throws {
        guard getuid() == 0 else { return print("power: skipping: only root may mount a file system") }
        try await Lab.run(self.options) { lab in
            let report = Report("power")
            let disks: [LoopDisk]
            do {
                disks = try await LoopDisk.several(self.options.jobs, in: lab.root)
            } catch {
                return print("power: skipping: \(error)")
            }
            let cuts = (0..<self.cuts).map { Cut(seed: self.options.seed &* 1_000_003 &+ UInt64($0), index: $0) }
            let chosen = self.options.chosen(cuts)
            do {
                try await forEach(Array(disks.enumerated()), atOnce: disks.count) { first, disk in
                    for index in stride(from: first, to: chosen.count, by: disks.count) {
                        try await self.cut(chosen[index], disk, lab, report)
                    }
                }
            } catch {
                for disk in disks { try? await disk.unmount() }
                throw error
            }
            for disk in disks { try await disk.unmount() }
            try report.conclude(atLeast: "cuts")
        }
    }

    private func cut(_ cut: Cut, _ disk: LoopDisk, _ lab: Lab, _ report: Report) async throws {
        let bench = try Bench(lab, name: "cut-\(cut.seed)", files: disk.mountPoint)
        let scenario = cut.scenario
        let replay = "segdl-crash power --seed \(self.options.seed) --only '\(cut)'"
        let path = "/\(scenario.size)/\(bench.name)/"
        let log = lab.origin.log
        // Whether the cut came during the run; otherwise it comes after it.
        let wasCut = Mutex(false)
        var durable: Int64 = 0
        if cut.moment == .resumed {
            var paused = scenario
            paused.beginning = .paused
            try await bench.begin(paused)
            durable = try await Self.savedBytes(bench)
        }
        let sentBefore = log.snapshot(path: path).bytesSent
        let outcome = try await bench.run(bench.command(scenario, query: Self.query(cut), more: ["--json"])) { child in
            await Self.wait(for: cut, sentBefore: sentBefore, path: path, log)
            guard !Task.isCancelled || ![.finished, .unsynced].contains(cut.moment) else { return }
            guard (try? disk.cut()) != nil else { return }
            wasCut.withLock { $0 = true }
            if cut.killsProcess { child.signal(SIGKILL) }
        }
        if !wasCut.withLock({ $0 }) {
            if cut.moment == .unsynced { try await Task.sleep(for: Self.journalDelay) }
            try disk.cut()
        }
        report.count("cuts")
        report.count("cuts of \(cut.moment)")
        if cut.moment != .unsynced { durable = max(durable, outcome.number("bytes_durable", of: "checkpoint") ?? 0) }
        let received = log.snapshot(path: path).bytesSent - sentBefore
        try await disk.unmount()
        try await disk.mount()

        var violations: [String] = []
        let destination = bench.destination(scenario)
        if case .wrong(let offset) = destination, cut.moment != .unsynced {
            violations.append("the destination exists and is wrong at \(offset)")
        }
        switch outcome.status {
        case 0 where destination != .right && cut.moment != .unsynced:
            violations.append("exit 0, but after the cut the destination holds \(destination)")
        case 0: report.count("done before the cut")
        case 3 where outcome.output.contains("\"event\":\"failed\""): report.count("told")
        case _ where outcome.wasKilled: break
        default: violations.append("it ended with \(outcome) \(outcome.output.suffix(400))")
        }
        if cut.moment == .unsynced, case .wrong(let offset) = destination {
            report.count("damaged without syncs")
            let next = try await bench.run(bench.command(scenario))
            if next.status != 12 { violations.append("it is wrong at \(offset), and the next run ended with \(next)") }
            try FileManager.default.removeItem(atPath: bench.path(.destination))
        } else if destination != .right {
            let kept = try await Self.savedBytes(bench)
            report.count("MiB durable", Int(durable >> 20))
            if kept < durable { violations.append("\(durable) bytes were durable, but only \(kept) survived") }
            if cut.moment == .checkpointed, received - kept > Self.lossMax {
                violations.append("\(received) bytes were received, but only \(kept) survived")
            }
            let next = try await bench.run(bench.command(scenario, more: ["--json"]))
            let resumed = next.number("resumed_from", of: "started") ?? 0
            if next.status != 0 { violations.append("the next run ended with \(next) \(next.output.suffix(400))") }
            if resumed < durable {
                violations.append("\(durable) bytes were durable, but the next run resumed from \(resumed)")
            }
            if resumed > 0 { report.count("resumed") }
        }
        violations += try await bench.violationsAfterFinishing(scenario)
        for violation in violations { report.violation("\(cut): \(violation)", replay: replay) }
        for name in try FileManager.default.contentsOfDirectory(atPath: bench.files) where name != "lost+found" {
            try FileManager.default.removeItem(atPath: "\(bench.files)/\(name)")
        }
        try FileManager.default.removeItem(atPath: bench.folder)
        // Otherwise the next cut restores what was just removed.
        try await disk.unmount()
        try await disk.mount()
    }

    // MARK: Moments

    /// Longer than the 5 s after which ext4 writes its journal, and shorter than the 30 s after which Linux writes data.
    private static let journalDelay = Duration.seconds(8)
    /// 3 MiB a second over all connections: a checkpoint after 5 s is at 15 of 24 MiB.
    private static let slowRate: Int64 = 3 << 20
    /// The bytes between two checkpoints, and a second for a slow machine.
    private static let lossMax = 6 * slowRate

    private static func query(_ cut: Cut) -> String {
        switch cut.moment {
        case .first, .resumed: "total-rate=32M"
        case .finishing, .finished, .unsynced: "total-rate=128M"
        case .checkpointed: "total-rate=\(Self.slowRate)"
        }
    }

    /// Returns at the chosen moment, or when the command has ended.
    private static func wait(for cut: Cut, sentBefore: Int64, path: String, _ log: OriginLog) async {
        let length = cut.scenario.length
        switch cut.moment {
        case .first:
            await log.waitForBytes(sent: Int64(cut.fraction * Double(length)), path: path)
        case .resumed:
            await log.waitForBytes(sent: sentBefore + Int64(cut.fraction * 0.4 * Double(length)), path: path)
        case .finishing:
            await log.waitForBytes(sent: length, path: path)
            // A random moment within the last steps, which take about this long.
            try? await Task.sleep(for: .microseconds(Int(cut.fraction * 25_000)))
        case .finished, .unsynced:
            await log.waitForBytes(sent: .max, path: path)
        case .checkpointed:
            await log.waitForBytes(sent: Int64((0.7 + 0.28 * cut.fraction) * Double(length)), path: path)
        }
    }

    /// The bytes that the manifest claims.
    private static func savedBytes(_ bench: Bench) async throws -> Int64 {
        let outcome = try await bench.run([bench.lab.segdl, "status", "--json", bench.path(.destination)])
        let object = (try? JSONSerialization.jsonObject(with: Data(outcome.output.utf8))) as? [String: Any]
        return (object?["bytes_done"] as? NSNumber)?.int64Value ?? 0
    }
}
