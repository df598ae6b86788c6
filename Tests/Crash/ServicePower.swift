import ArgumentParser
import Foundation
import Origin
import SegmentedDownloadCore
import TestSupport

/// Cuts the power of a real ext4 that has the background service's state and files. What it has acknowledged stays.
struct ServicePower: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Cut the power under the background service at random moments (root only).")

    @OptionGroup var options: LabOptions

    @Option(help: "Power cuts.")
    var cuts = 100

    /// A power cut whose properties follow from a seed.
    fileprivate struct Cut: Sendable, CustomStringConvertible {
        enum Moment: String, Sendable {
            /// While a file is being added.
            case adding
            /// Right after a file was added.
            case added
            /// In the middle of a file.
            case fetching
            /// Around the last bytes of a file, when it is synced and renamed, and the history is written.
            case finishing
            /// Right after `wait` has reported completion.
            case completed

            /// Their order. Seven, a prime number, so that the cuts of a slice have different ones.
            static let turns: [Self] = [.added, .fetching, .finishing, .completed, .adding, .finishing, .fetching]
        }

        let seed: UInt64
        let moment: Moment
        /// Whether the daemon sees the disk fail. Otherwise it ends with the disk.
        let outlivesDisk: Bool

        init(seed: UInt64, index: Int) {
            var generator = SplitMix64(seed: seed)
            self.seed = seed
            self.moment = Moment.turns[index % Moment.turns.count]
            self.outlivesDisk = Bool.random(using: &generator)
        }

        var description: String {
            "\(self.moment), seed \(self.seed)\(self.outlivesDisk ? ", the daemon outlives the disk" : "")"
        }
    }

    func run() async throws {
        guard getuid() == 0 else { return print("service-power: skipping: only root may mount a file system") }
        try await Lab.run(self.options) { lab in
            let report = Report("service-power")
            let disks: [LoopDisk]
            do {
                disks = try await LoopDisk.several(self.options.jobs, in: lab.root)
            } catch {
                return print("service-power: skipping: \(error)")
            }
            let cuts = (0..<self.cuts).map { Cut(seed: self.options.seed &* 1_000_003 &+ UInt64($0), index: $0) }
            let chosen = self.options.chosen(cuts)
            do {
                try await forEach(Array(disks.enumerated()), atOnce: disks.count) { first, disk in
                    try await self.withWorker(first, on: disk, lab, report) { worker in
                        for index in stride(from: first, to: chosen.count, by: disks.count) {
                            try await worker.cut(chosen[index])
                        }
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

    /// Calls `body` with a new queue on a disk; its history grows with each cut.
    private func withWorker(
        _ number: Int, on disk: LoopDisk, _ lab: Lab, _ report: Report, _ body: (Worker) async throws -> Void
    ) async throws {
        let bench = try ServiceBench(lab, name: "power-\(number)", disk: disk.mountPoint)
        // Otherwise the first cut removes the directories that a system has from the start.
        try await disk.unmount()
        try await disk.mount()
        let session = ServiceSession(
            bench, options: [], seed: self.options.seed, report: report,
            replay: "segdl-crash service-power --cuts \(self.cuts) --seed \(self.options.seed) "
                + "--jobs \(self.options.jobs) --slice \(self.options.slice.defaultValueDescription)")
        do {
            try await body(Worker(session, disk))
        } catch {
            session.violation("\(error)")
        }
    }
}

/// A queue on a disk whose power is cut many times.
private final class Worker {
    /// 8 MiB a second for each file, so that a cut meets a file of 9 MiB in the middle.
    private static let pace = "total-rate=8M"
    /// At most ten of them at a time on a disk of 160 MiB. Above 8 MiB a file has a manifest from the start.
    private static let lengths: [Int64] = [64 << 10, 300_001, 1 << 20, 3 << 20, 9 << 20]
    /// 2 entries stay paused from cut to cut, so that the queue has some that are older.
    private static let pausedMax = 2
    private static let waitMax: Duration = .seconds(5)

    private let session: ServiceSession
    private let disk: LoopDisk
    private var accounted: Set<String> = []

    init(_ session: ServiceSession, _ disk: LoopDisk) {
        self.session = session
        self.disk = disk
    }

    func cut(_ cut: ServicePower.Cut) async throws {
        let session = self.session
        session.moment = "\(cut)"
        session.generator = SplitMix64(seed: cut.seed &+ 1)
        try await session.withDaemon(mayExit: true) { daemon in
            try await session.begin(daemon)
            try await self.live(until: cut.moment)
            // The disk accepts nothing any more, so this must not be acknowledged.
            if cut.outlivesDisk { try await session.issue(.add(self.newFile()), isInterrupted: true) }
        }
        session.report.count("cuts")
        session.report.count("cuts, \(cut.moment)")
        try await self.remount()

        session.checkNames()
        try await session.withDaemon { daemon in
            try await session.begin(daemon)
            try await session.settle(keepingPaused: Self.pausedMax, atMost: .seconds(300))
        }
        try self.account()
        // Otherwise the next cut restores what was just removed.
        try await self.remount()
    }

    private func remount() async throws {
        try await self.disk.unmount()
        try await self.disk.mount()
    }

    /// Adds files and gives commands, and cuts the power at the moment.
    private func live(until moment: ServicePower.Cut.Moment) async throws {
        let session = self.session
        for _ in 0..<Int.random(in: 1...3, using: &session.generator) { try await session.issue(.add(self.newFile())) }
        if session.ledger.open(.pause).count < Self.pausedMax {
            try await session.issue(.add(self.newFile(length: 64 << 10), paused: true))
        }
        for _ in 0..<Int.random(in: 0..<3, using: &session.generator) {
            if let command = session.draw() { try await session.issue(command) }
        }
        let file = self.newFile(length: moment == .fetching ? 9 << 20 : nil)
        if moment == .adding {
            return try await session.issue(.add(file), trustsLateAnswer: false) { try self.disk.cut() }
        }
        try await session.issue(.add(file, first: true))
        let log = session.bench.lab.origin.log
        switch moment {
        case .adding, .added: break
        case .fetching:
            let bytes = Int64.random(in: 1..<file.length, using: &session.generator)
            await within(Self.waitMax) { await log.waitForBytes(sent: bytes, path: file.path) }
        case .finishing:
            await within(Self.waitMax) { await log.waitForBytes(sent: file.length, path: file.path) }
            // Syncing and renaming the file and writing the history take about this long.
            try? await Task.sleep(for: .microseconds(Int.random(in: 0..<50_000, using: &session.generator)))
        case .completed:
            guard let id = session.ledger.id(of: file) else { break }
            let outcome = try await session.bench.client(["wait", "--no-autostart", id])
            if outcome.status != 0 { session.violation("wait \(id) ended with \(outcome)") }
            // From now on the entry must stay complete.
            try await session.check(afterRestart: false)
        }
        try self.disk.cut()
    }

    private func newFile(length: Int64? = nil) -> ServiceFile {
        let session = self.session
        let naming = [ServiceFile.Naming.option, .url, .response].randomElement(using: &session.generator) ?? .url
        let isWhole = Int.random(in: 0..<8, using: &session.generator) == 0
        let drawn = Self.lengths.randomElement(using: &session.generator) ?? 1 << 20
        return session.newFile(
            length: length ?? drawn, pace: Self.pace, naming: naming, serving: isWhole ? .unknownLength : .ranges,
            isVictim: Int.random(in: 0..<4, using: &session.generator) == 0)
    }

    /// Checks that what has ended is in place, and removes it.
    private func account() throws {
        let session = self.session
        session.checkNames()
        let completed = session.ledger.ended("completed").map(\.file)
        for file in completed where self.accounted.insert(file.name).inserted {
            session.report.count("files complete")
            if !session.exists(file) { session.violation("\(file) is complete, and not there") }
        }
        let names = session.ledger.files.map(\.name)
        for name in try session.namesOfEnded() {
            // A part or manifest of an ended download, whose removal a cut may undo. It costs space, and no data.
            if !names.contains(name) { session.report.count("files left beside finished ones") }
            try FileManager.default.removeItem(atPath: "\(session.bench.files)/\(name)")
        }
    }
}
