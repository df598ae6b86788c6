import SegmentedDownload
import SegmentedDownloadCore

/// Cuts the power before every disk operation of one download, and runs the same command on every state that the cut
/// may leave.
///
/// Each of these runs must end with the right file. Without syncs, the power is cut after the download, and no run may
/// report a wrong file as complete.
package struct CrashStates {
    package private(set) var moments = 0
    package private(set) var states = 0
    package private(set) var violations: [String] = []

    private let version: SimulatedOrigin.Version
    private let origin: SimulatedOrigin
    private let request: DownloadRequest
    private let seed: UInt64
    private let statesMax: Int
    private let before: DiskImage.Settled
    /// Whether short files stay in memory until they are complete.
    private let usesMemory: Bool
    /// Whether the disk has files without a name.
    private let hasUnnamedFiles: Bool

    /// Whether short files stay in memory until they are complete.
    package static func usesMemory(seed: UInt64) -> Bool { seed % 4 > 1 }

    /// - Parameter statesMax: The number of states after which the run stops.
    package init(seed: UInt64, statesMax: Int, isSynced: Bool = true) throws {
        var generator = SplitMix64(seed: seed)
        self.seed = seed
        self.statesMax = statesMax
        // A few blocks and a few segments: the states differ by the order of operations, not by size.
        let length = Int.random(in: 1...(20 << 10), using: &generator)
        self.version = SimulatedNetwork.version(1, count: length, using: &generator)
        var origin = SimulatedOrigin(self.version)
        origin.identity = SimulatedOrigin.Identity.allCases.randomElement(using: &generator) ?? .strong
        origin.doesRanges = Int.random(in: 0..<4, using: &generator) != 0
        origin.tellsLength = Int.random(in: 0..<4, using: &generator) != 0
        self.origin = origin
        var request = DownloadRequest(try SourceURL("http://origin/file0"), to: .file("file0"))
        request.segments = .exactly(Int.random(in: 1...4, using: &generator))
        request.splitLengthMinimum = 1024
        request.stallTimeout = .seconds(3600)
        request.syncPolicy = isSynced ? .checkpoint : .none
        request.allocates = Bool.random(using: &generator)
        let replaces = Int.random(in: 0..<4, using: &generator) == 0
        request.ifExists = replaces ? .overwrite : .verify
        self.request = request
        // The file that an overwriting run finds.
        let old = DiskImage.File(number: 9, bytes: [1, 2, 3], attributes: [:], pending: [])
        // Two seeds of four begin on disk, one in memory, and one in memory on a disk without unnamed files.
        self.usesMemory = Self.usesMemory(seed: seed)
        self.hasUnnamedFiles = seed % 4 != 2
        self.before = DiskImage.Settled(files: replaces ? [("file0", old)] : [], boot: 0)
    }

    /// Cuts the power before every operation, and resumes from every state that the cut may leave.
    package mutating func run() {
        var images: [DiskImage] = []
        let clock = SimulatedClock()
        let disk = SimulatedDisk(self.before, seed: self.seed, clock: clock)
        // A rate at which the download lasts for a few checkpoints.
        let ending = self.download(disk, clock, rate: max(self.version.bytes.count / 12, 64)) {
            images.append(disk.image())
        }
        if ending != "completed" { self.violations.append("the undisturbed run ends with \(ending)") }
        if !self.isSynced { images = [disk.image()] }
        for (moment, image) in images.enumerated() {
            guard self.violations.isEmpty, self.states < self.statesMax else { return }
            self.moments += 1
            var (states, violation) = (self.states, String?.none)
            image.states { settled in
                states += 1
                violation = self.flaw(after: settled)
                return violation == nil && states < self.statesMax
            }
            self.states = states
            if let violation {
                self.violations.append(
                    "\(violation); before operation \(moment + 1), state \(states), seed \(self.seed)")
            }
        }
    }

    private var isSynced: Bool { self.request.syncPolicy != .none }

    /// Runs the same command on what a power cut left; returns what is wrong, `nil` if nothing is.
    private func flaw(after settled: DiskImage.Settled) -> String? {
        if self.isSynced, let named = settled.files.first(where: { $0.0 == "file0" })?.1.bytes,
            named != self.version.bytes, named != [1, 2, 3]
        {
            return "a wrong file has the final name"
        }
        let clock = SimulatedClock()
        // With the time that its record has, a file that was not synced is read nevertheless.
        let disk = SimulatedDisk(settled, seed: self.seed, clock: clock, keepsTimes: !self.isSynced)
        let ending = self.download(disk, clock, rate: 1 << 24) {}
        guard self.isSynced else {
            let isWrong = disk.names["file0"]?.bytes != self.version.bytes
            return isWrong && ["completed", "already"].contains(ending) ? "a wrong file is reported as \(ending)" : nil
        }
        // The file is in place, and without a validator the origin cannot confirm that it is current.
        let isUnprovable =
            ending.hasPrefix("exists: the destination exists")
            && ([.weak, .none].contains(self.origin.identity) || !self.origin.tellsLength)
        guard ending == "completed" || ending == "already" || isUnprovable else {
            return "the next run ends with \(ending)"
        }
        guard disk.names["file0"]?.bytes == self.version.bytes else { return "the next run makes a wrong file" }
        let left = disk.names.keys.sorted().filter { $0 != "file0" }
        return left.isEmpty ? nil : "the next run leaves \(left.joined(separator: ", "))"
    }

    private func download(
        _ disk: SimulatedDisk, _ clock: SimulatedClock, rate: Int, before: @escaping () -> Void
    ) -> String {
        disk.onOperation = { _ in before() }
        disk.hasUnnamedFiles = self.hasUnnamedFiles
        let network = SimulatedNetwork(seed: self.seed, clock: clock, origins: [self.origin])
        network.rate = rate
        network.totalRate = rate * 8
        network.chunkMax = max(self.version.bytes.count / 6, 1)
        let executor = SeededExecutor(seed: self.seed)
        let client = DownloadClient(
            configuration: DownloadConfiguration(), transport: network, storage: disk.storage(), clock: clock,
            seed: self.seed, memory: self.usesMemory ? PartMemory() : nil)
        let outcome = Outcome(isLogged: false)
        let request = self.request
        _ = Task(executorPreference: executor) {
            do {
                let result = try await client.download(request)
                outcome.endings = [result.wasAlreadyComplete ? "already" : "completed"]
            } catch {
                outcome.endings = ["\(error)"]
            }
            outcome.isOver = true
        }
        while !outcome.isOver {
            guard executor.runOne() || clock.advance() else { return "nothing" }
        }
        disk.onOperation = { _ in }
        return outcome.endings.first ?? "nothing"
    }
}
