package import SegmentedDownload
package import SegmentedDownloadCore

/// The tasks of one file as simulated processes on one disk, with the production engine.
package struct SharedFileScene {
    /// A disk and its clock.
    package struct Machine {
        package let clock: SimulatedClock
        package let disk: SimulatedDisk

        package init(seed: UInt64) {
            self.clock = SimulatedClock()
            self.disk = SimulatedDisk(seed: seed, clock: self.clock)
        }

        init(_ settled: DiskImage.Settled, seed: UInt64) {
            self.clock = SimulatedClock()
            self.disk = SimulatedDisk(settled, seed: seed, clock: self.clock)
        }
    }

    /// A run of a task.
    package struct Start {
        package let shard: Shard
        package var delay = Duration.zero

        package init(_ shard: Shard, delay: Duration = .zero) { (self.shard, self.delay) = (shard, delay) }
    }

    /// What an observer of the runs is told.
    package enum Event {
        case began(Shard, SimulatedStorage)
        /// Bytes of a window have arrived, given as offsets in the file.
        case received(FileWindow, Range<Int>, by: Shard)
        /// A download has reported that so many bytes of a window are durable.
        case checkpoint(FileWindow, length: Int64)
        /// The download of a window has ended well.
        case fetched(FileWindow, by: Shard)
        case ended(Shard, String)
    }

    package static let name = "file0"
    package static let alignment: Int64 = 1024

    package let seed: UInt64
    package var count: Int
    package let version: SimulatedOrigin.Version
    package var origin: SimulatedOrigin
    package var digests: [ExpectedDigest] = []
    package var ifExists = DownloadOptions.ExistingFilePolicy.verify
    package var syncPolicy = DownloadOptions().syncPolicy
    /// Bytes per second of a connection.
    package var rate = 1 << 12
    /// Connections of a task.
    package var segments = 2
    /// The longest piece in which bytes arrive.
    package var chunkMax = 700
    /// After which time tasks that are done fetch the ranges of others.
    package var patience: Duration?
    /// Whether each task has the name of a machine of its own.
    package var hasSeparateMachines = false

    package init(seed: UInt64, length: Int? = nil) {
        var generator = SplitMix64(seed: seed)
        self.seed = seed
        self.count = Int.random(in: 1...4, using: &generator)
        let length = length ?? Int.random(in: 1...(12 << 10), using: &generator)
        self.version = SimulatedNetwork.version(1, count: length, using: &generator)
        self.origin = SimulatedOrigin(self.version)
        self.origin.identity = .strong
    }

    package var shards: [Shard] { (1...self.count).compactMap { Shard(number: $0, of: self.count) } }

    package func file(in storage: SimulatedStorage, _ machine: Machine) -> SharedFile {
        var file = SharedFile(Self.name, storage: storage, clock: machine.clock)
        file.alignment = Self.alignment
        return file
    }

    private func request() throws -> DownloadRequest {
        var request = DownloadRequest(try SourceURL("http://origin/file0"), to: .file("file0"))
        request.segments = .exactly(self.segments)
        request.splitLengthMinimum = 512
        request.stallTimeout = .seconds(3600)
        request.digests = self.digests
        (request.ifExists, request.options.syncPolicy) = (self.ifExists, self.syncPolicy)
        return request
    }

    /// Runs tasks at the same time until all have ended.
    ///
    /// - Parameters:
    ///   - round: Different for each call on one disk, because runs have random numbers of their own.
    ///   - observe: Called with what happens.
    /// - Returns: How each run has ended: `assembled`, `waiting`, `already`, or the text of an error.
    package func run(
        _ starts: [Start], on machine: Machine, round: UInt64 = 0, observe: @escaping (Event) -> Void = { _ in }
    ) -> [String] {
        guard let request = try? self.request() else { return ["the request is invalid"] }
        let executor = SeededExecutor(seed: self.seed &+ round)
        let runs = starts.enumerated().map { number, start in
            SharedFileProcess(
                start, self, on: machine, request,
                random: (self.seed &* 1000 &+ round &* 100 &+ UInt64(number)) &* 0x9E37_79B9_7F4A_7C15,
                observe: observe)
        }
        for run in runs { _ = Task(executorPreference: executor) { await run.run() } }
        while runs.contains(where: { $0.ending == nil }) {
            guard executor.runOne() || machine.clock.advance() else { break }
        }
        return runs.map { $0.ending ?? "nothing" }
    }

    package static func isGood(_ ending: String) -> Bool { ["assembled", "waiting", "already"].contains(ending) }
}

/// A run of one task as a process of its own.
private final class SharedFileProcess: @unchecked Sendable {
    // Unchecked: the whole simulation runs on one thread.
    private let start: SharedFileScene.Start
    private let machine: SharedFileScene.Machine
    private let storage: SimulatedStorage
    private let client: DownloadClient
    private let task: SharedFileTask
    private let observe: (SharedFileScene.Event) -> Void
    /// The window that is being fetched.
    private var window: FileWindow?
    private var error: (any Error)?
    private(set) var ending: String?

    init(
        _ start: SharedFileScene.Start, _ scene: SharedFileScene, on machine: SharedFileScene.Machine,
        _ request: DownloadRequest, random: UInt64, observe: @escaping (SharedFileScene.Event) -> Void
    ) {
        let shard = start.shard
        (self.start, self.machine, self.observe) = (start, machine, observe)
        let network = SimulatedNetwork(
            seed: scene.seed &+ UInt64(shard.number), clock: machine.clock, origins: [scene.origin])
        network.rate = scene.rate
        network.totalRate = scene.rate * 4
        network.chunkMax = scene.chunkMax
        self.storage = machine.disk.process()
        self.client = DownloadClient(
            configuration: DownloadConfiguration(), transport: network, storage: self.storage, clock: machine.clock,
            seed: random, memory: scene.seed % 2 == 0 ? PartMemory() : nil)
        self.task = SharedFileTask(
            shard, of: scene.file(in: self.storage, machine), request, takingOverAfter: scene.patience, id: random,
            machine: (scene.hasSeparateMachines ? "node\(shard.number)" : "node", Int32(shard.number), ~random))
        network.onDelivery = { [unowned self] range in
            if let window { self.observe(.received(window, range, by: shard)) }
        }
    }

    func run() async {
        self.observe(.began(self.start.shard, self.storage))
        let ending = await self.result()
        self.ending = ending
        self.observe(.ended(self.start.shard, ending))
    }

    private func result() async -> String {
        do {
            let clock = self.machine.clock
            if self.start.delay > .zero { try await clock.sleep(until: clock.now + self.start.delay) }
            let request = self.task.request
            let ending = try await self.task.run {
                let found = try await self.client.probe(request)
                let (resource, length) = try found.divisible(hasDigest: !request.digests.isEmpty)
                return (resource, length)
            } note: { _ in
            } noteTakeOver: { _, _ in
            } fetch: {
                try await self.fetch($0)
            }
            return switch ending {
            case .ended(.assembled, _): "assembled"
            case .ended(.waiting, _): "waiting"
            case .alreadyComplete: "already"
            case .failed: self.error.map { "\($0)" } ?? "failed"
            case .different, .empty, .divided: "\(ending)"
            }
        } catch {
            return "\(error)"
        }
    }

    /// As in the command, a download that fails is no error.
    private func fetch(_ request: DownloadRequest) async throws -> ShardStatus.State {
        guard let window = request.window else { return .failed }
        self.window = window
        defer { self.window = nil }
        let last = try await self.client.withGroup { group in
            var last: DownloadEvent?
            for await event in try group.add(request).events where event.isTerminal || self.isCheckpoint(event) {
                last = event
                if event.isTerminal { break }
            }
            return last
        }
        switch last {
        case .completed?: self.observe(.fetched(window, by: self.start.shard))
        case .failed(let error, _)?: self.error = error
        case .paused?, .cancelled?, .started?, .progress?, .segment?, .retrying?, .checkpoint?, .note?, .state?, nil:
            break
        }
        if case .completed? = last { return .finished }
        return .failed
    }

    /// Whether an event is a checkpoint, which is noted.
    private func isCheckpoint(_ event: DownloadEvent) -> Bool {
        guard case .checkpoint(let length) = event, let window else { return false }
        self.observe(.checkpoint(window, length: length))
        return true
    }
}
