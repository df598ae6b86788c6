import SegmentedDownloadCore

/// Cuts the power at any moment while several tasks fetch one file, and runs the same commands on the states that the cut may
/// leave.
///
/// In no state may a manifest or a record claim a byte that is not there, and nothing may be missing that was durable before
/// (``OneFileRecords``). The next runs must make the file, leave nothing else, and not fetch again what was durable.
///
/// At every moment the processes may also be killed while the power stays on. Then no manifest may claim a byte that is not
/// there, durable or not.
package struct OneFileCrashStates {
    /// 500: enough for every moment of most scenes, and 250,000 states are 500 scenes.
    package static let statesMaxDefault = 500

    /// One state of a scene. A violation names it, so that it can be replayed.
    package struct StateName: Hashable, Sendable, CustomStringConvertible {
        let moment: Int
        /// Among the fates of pending operations (``DiskImage/fates``).
        let fate: Int
        /// The number of directory operations that survive.
        let names: Int

        /// Parses ``description``.
        package init?(_ text: String) {
            let numbers = text.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) }
            guard numbers.count == 3, let moment = numbers[0], let fate = numbers[1], let names = numbers[2] else {
                return nil
            }
            self.init(moment: moment, fate: fate, names: names)
        }

        init(moment: Int, fate: Int, names: Int) { (self.moment, self.fate, self.names) = (moment, fate, names) }

        package var description: String { "\(self.moment).\(self.fate).\(self.names)" }
    }

    package private(set) var moments = 0
    package private(set) var states = 0
    package private(set) var violations: [String] = []
    /// What happens in a replayed state.
    package private(set) var log: [String] = []

    private let seed: UInt64
    private let statesMax: Int
    private let plot: OneFilePlot
    private var generator: SplitMix64

    /// - Parameter statesMax: The number of states after which the run stops. A scene has thousands; no state is tried twice.
    package init(seed: UInt64, statesMax: Int) {
        (self.seed, self.statesMax) = (seed, statesMax)
        self.plot = OneFilePlot(seed: seed)
        self.generator = SplitMix64(seed: seed ^ 0x57A7E5)
    }

    /// Records the scene, and tries states of all its moments.
    package mutating func run() {
        let moments = self.plot.record()
        self.moments = moments.count
        var seen: Set<Int> = []
        for (number, moment) in moments.enumerated() {
            if let flaw = self.flawAfterKill(at: moment) {
                let place = "seed \(self.seed), killed at moment \(number)"
                return self.violations.append("\(place): \(flaw) (\(self.plot.description))")
            }
            // What one moment lacks in different states, the later ones have.
            let share = (self.statesMax - self.states - 1) / (moments.count - number) + 1
            self.draw(share, of: moment, number, seen: &seen)
            guard self.violations.isEmpty, self.states < self.statesMax else { return }
        }
    }

    /// What is wrong if all processes are killed at a moment, and the power stays on; nil if nothing is.
    private func flawAfterKill(at moment: OneFilePlot.Moment) -> String? {
        guard !self.plot.hasLostPower else { return nil }
        let machine = SharedFileScene.Machine(moment.image.most, seed: self.seed)
        do {
            _ = try OneFileRecords(self.plot.scene, on: machine, includesPending: true)
            return nil
        } catch {
            return (error as? OneFileRecords.Flaw)?.text ?? "\(error)"
        }
    }

    /// Runs one state.
    package mutating func replay(_ name: StateName) {
        let moments = self.plot.record()
        self.log = ["seed \(self.seed): \(self.plot.description)"]
        guard moments.indices.contains(name.moment), case let fates = moments[name.moment].image.fates,
            fates.indices.contains(name.fate),
            (0...moments[name.moment].image.pendingNames.count).contains(name.names)
        else { return self.violations.append("seed \(self.seed) has no state \(name)") }
        let moment = moments[name.moment]
        let settled = moment.image.state(fates[name.fate], names: name.names)
        self.log.append("complete before the cut: \(moment.complete)\(moment.isAssembled ? ", and the file" : "")")
        self.log += moment.durable.sorted { $0.key < $1.key }.map {
            "reported as durable: \($0.value) bytes of \($0.key)"
        }
        for (name, file) in settled.files.sorted(by: { $0.0 < $1.0 }) {
            self.log.append("\(name): \(file.bytes.count) bytes, inode \(file.number)")
        }
        let trial = OneFileTrial(self.plot, settled, moment)
        self.states = 1
        if let flaw = trial.flaw() { self.violations.append(flaw) }
        self.log += trial.log
    }

    /// Tries some of the states that a cut at one moment may leave, drawn at random.
    private mutating func draw(_ count: Int, of moment: OneFilePlot.Moment, _ number: Int, seen: inout Set<Int>) {
        guard count > 0 else { return }
        let fates = moment.image.fates
        let namesMax = moment.image.pendingNames.count
        var left = count
        // Most moments have many more states. Those that have been tried are drawn again and passed over.
        for _ in 0..<count * 4 where left > 0 {
            let isCorner = Int.random(in: 0..<4, using: &self.generator) == 0
            let fate =
                isCorner
                ? Int.random(in: 0..<2, using: &self.generator)
                : Int.random(in: 0..<fates.count, using: &self.generator)
            let names =
                isCorner
                ? Bool.random(using: &self.generator) ? namesMax : 0
                : Int.random(in: 0...namesMax, using: &self.generator)
            let settled = moment.image.state(fates[fate], names: names)
            guard seen.insert(settled.fingerprint(after: moment)).inserted else { continue }
            left -= 1
            self.states += 1
            let trial = OneFileTrial(self.plot, settled, moment)
            guard let flaw = trial.flaw() else { continue }
            let name = StateName(moment: number, fate: fate, names: names)
            return self.violations.append(
                """
                seed \(self.seed): \(flaw) (\(self.plot.description))
                  replay: segdl-simulate crash-states --one-file --first \(self.seed) --state \(name)
                """)
        }
    }
}

extension DiskImage.Settled {
    /// Differs for different states, and for those after different reports.
    fileprivate func fingerprint(after moment: OneFilePlot.Moment) -> Int {
        var hasher = Hasher()
        hasher.combine(moment.complete)
        hasher.combine(moment.durable)
        hasher.combine(moment.isAssembled)
        for (name, file) in self.files.sorted(by: { $0.0 < $1.0 }) {
            hasher.combine(name)
            hasher.combine(file.bytes)
            hasher.combine(file.attributes)
        }
        return hasher.finalize()
    }
}
