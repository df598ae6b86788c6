import SegmentedDownload
import SegmentedDownloadCore

/// What happens to the tasks of one file until the power is cut, and what is done afterwards. All of it follows from a seed.
struct OneFilePlot: CustomStringConvertible {
    /// What has happened to the tasks before those runs of which every moment counts.
    enum Past: CaseIterable {
        case none
        /// All tasks were killed at one moment.
        case killed
        /// The power was cut once before.
        case cut
    }

    /// What happens to one task in the runs of which every moment counts.
    enum Fault: CaseIterable {
        case none
        /// It is killed, and run again later.
        case killed
        /// It is killed, and the others fetch its range.
        case dead
        /// It is so late that the others fetch its range while it begins.
        case late
    }

    /// What is run after the power cut.
    enum Sequel: CaseIterable {
        /// All tasks at the same time.
        case together
        /// One task after the other.
        case apart
        /// All tasks but one, whose range the others fetch.
        case withoutOne
        /// All tasks at the same time, and those that are done fetch the ranges of the others.
        case impatient
    }

    /// A moment before an operation on disk, or after the last.
    struct Moment {
        let image: DiskImage
        /// The windows whose download has ended well, and which are durable therefore.
        let complete: [Range<Int64>]
        /// How many bytes a download has reported as durable, by the name of its record.
        let durable: [String: Int64]
        /// Whether a task has reported that the file is complete.
        let isAssembled: Bool

        fileprivate init(_ notes: Notes, _ image: DiskImage) {
            self.image = image
            (self.complete, self.durable, self.isAssembled) = (notes.complete, notes.durable, notes.isAssembled)
        }

        /// Whether nothing has been reported since.
        fileprivate func isAfter(_ notes: Notes) -> Bool {
            self.complete == notes.complete && self.durable == notes.durable && self.isAssembled == notes.isAssembled
        }
    }

    /// What is noted during the runs. One thread uses it.
    fileprivate final class Notes: @unchecked Sendable {
        var moments: [Moment] = []
        var changes = -1
        var complete: [Range<Int64>] = []
        var durable: [String: Int64] = [:]
        var isAssembled = false

        func note(_ disk: SimulatedDisk) {
            if let last = self.moments.last, self.changes == disk.changes, last.isAfter(self) { return }
            self.changes = disk.changes
            self.moments.append(Moment(self, disk.image()))
        }
    }

    let seed: UInt64
    private(set) var scene: SharedFileScene
    let sequel: Sequel
    /// The task that has the fault, and the one that is not run after the power cut.
    let victim: Shard
    private let past: Past
    private let fault: Fault
    /// Where in the runs the fault happens, as a part of their operations.
    private let moment: Double
    private let delays: [Duration]

    init(seed: UInt64) {
        var generator = SplitMix64(seed: seed ^ 0x0F11E)
        self.seed = seed
        // Mostly two: each state is a run of all of them.
        let count = [2, 2, 2, 3, 3, 4].randomElement(using: &generator) ?? 2
        // Two blocks per task at most: the states differ by the order of operations, not by size.
        let length = Int.random(in: (count - 1) << 10...count << 11, using: &generator)
        var scene = SharedFileScene(seed: seed, length: length)
        scene.count = count
        // From a rate at which a task lasts for some checkpoints to one at which all end before the first.
        scene.rate = 1 << Int.random(in: 5...11, using: &generator)
        scene.hasSeparateMachines = Bool.random(using: &generator)
        if Int.random(in: 0..<3, using: &generator) == 0 {
            scene.digests = [ExpectedDigest(.sha256, hex: scene.version.digest(.sha256))].compactMap { $0 }
        }
        self.past =
            Int.random(in: 0..<3, using: &generator) > 0
            ? .none : Past.allCases.randomElement(using: &generator) ?? .none
        self.fault = Fault.allCases.randomElement(using: &generator) ?? .none
        self.sequel = Sequel.allCases.randomElement(using: &generator) ?? .together
        self.moment = Double.random(in: 0.05..<0.9, using: &generator)
        self.victim = scene.shards[Int.random(in: 0..<count, using: &generator)]
        let isStaggered = Bool.random(using: &generator)
        self.delays = (0..<count).map { _ in .seconds(isStaggered ? Int.random(in: 0...15, using: &generator) : 0) }
        self.scene = scene
    }

    /// Whether the power was cut once before, so that claims that were not durable may be wrong.
    var hasLostPower: Bool { self.past == .cut }

    var description: String {
        "\(self.scene.count) tasks, \(self.scene.version.bytes.count) bytes, \(self.scene.rate) bytes/s, past: \(self.past), "
            + "task \(self.victim): \(self.fault), then: \(self.sequel)"
            + "\(self.scene.hasSeparateMachines ? ", a machine each" : "")\(self.scene.digests.isEmpty ? "" : ", digest")"
    }

    // MARK: Before the power cut

    /// Runs the tasks, and returns every moment at which the power may be cut.
    func record() -> [Moment] {
        // Once undisturbed, to know how many operations there are.
        let rehearsal = self.machine()
        let before = rehearsal.disk.operations
        _ = self.run(on: rehearsal, notes: nil, faultAt: nil)
        let count = rehearsal.disk.operations - before
        let machine = self.machine()
        let notes = Notes()
        _ = self.run(on: machine, notes: notes, faultAt: before + 1 + Int(Double(count) * self.moment))
        machine.disk.onOperation = { _ in }
        notes.note(machine.disk)
        return notes.moments
    }

    /// A disk with the past.
    private func machine() -> SharedFileScene.Machine {
        let whole = self.blank()
        guard self.past != .none else { return whole }
        _ = self.scene.run(self.starts, on: whole, round: 1)
        let machine = self.blank()
        let moment = 1 + Int(Double(whole.disk.operations) * (1 - self.moment))
        machine.disk.onOperation = { [unowned disk = machine.disk] number in
            guard number == moment else { return }
            if self.past == .cut { disk.cutPower() } else { disk.killProcess() }
        }
        _ = self.scene.run(self.starts, on: machine, round: 1)
        machine.disk.onOperation = { _ in }
        return machine
    }

    private func blank() -> SharedFileScene.Machine {
        let machine = SharedFileScene.Machine(seed: self.seed)
        machine.disk.hasSeparateMachines = self.scene.hasSeparateMachines
        return machine
    }

    private var starts: [SharedFileScene.Start] {
        zip(self.scene.shards, self.delays).map { SharedFileScene.Start($0, delay: $1) }
    }

    private func run(on machine: SharedFileScene.Machine, notes: Notes?, faultAt: Int?) -> [String] {
        var (scene, starts) = (self.scene, self.starts)
        switch self.fault {
        case .none: break
        case .killed: starts.append(.init(self.victim, delay: .seconds(20)))
        case .dead: scene.patience = .seconds(4)
        case .late:
            scene.patience = .seconds(2)
            starts[self.victim.number - 1].delay = .seconds(12)
        }
        let kills = self.fault == .killed || self.fault == .dead
        var victims: [SimulatedStorage] = []
        machine.disk.onOperation = { [unowned disk = machine.disk] number in
            if kills, number == faultAt, let first = victims.first { disk.kill(first) }
            notes?.note(disk)
        }
        let noting = notes
        let victim = self.victim
        return scene.run(starts, on: machine, round: 2) { event in
            switch event {
            case .began(victim, let storage): victims.append(storage)
            case .fetched(let window, _): noting?.complete.append(window.range)
            case .checkpoint(let window, let length):
                let name = OneFileRecords.name(of: window)
                noting?.durable[name] = max(noting?.durable[name] ?? 0, length)
            case .ended(_, "assembled"), .ended(_, "already"): noting?.isAssembled = true
            case .began, .received, .ended: break
            }
        }
    }
}

extension SimulatedOrigin.Version {
    func digest(_ algorithm: ExpectedDigest.Algorithm) -> String {
        var digest = RunningDigest(algorithm)
        self.bytes.withUnsafeBytes { digest.update($0) }
        return digest.hex
    }
}
