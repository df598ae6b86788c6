import SegmentedDownloadCore
import Simulator
import Synchronization
import Testing

@testable import SegmentedDownload

extension SharedFileScene {
    /// - Parameter delays: When tasks begin, if not at once.
    fileprivate func run(
        _ shards: [Shard], on machine: Machine, round: UInt64 = 0, delays: [Shard: Duration] = [:]
    ) -> [String] {
        self.run(shards.map { Start($0, delay: delays[$0] ?? .zero) }, on: machine, round: round)
    }

    /// What is wrong with a disk after all tasks have ended; nil if nothing is.
    fileprivate func flaw(_ disk: SimulatedDisk, _ endings: [String]) -> String? {
        guard disk.names[Self.name]?.bytes == self.version.bytes else {
            return "the file is wrong or missing: \(endings)"
        }
        guard endings.allSatisfy({ Self.isGood($0) }) else { return "\(endings)" }
        let left = (try? disk.storage().names(in: ".")) ?? []
        return left == [".", "..", Self.name] ? nil : "left: \(left), \(disk.names.keys.sorted())"
    }
}

/// How a task has ended.
private final class Ending: Sendable {
    let text = Mutex<String?>(nil)
}

@Suite("A file that several tasks fetch")
struct SharedFileTests {
    @Test(
        "Tasks that run at the same time make the file, and the last one puts it into place", arguments: UInt64(0)..<24)
    func together(seed: UInt64) {
        let scene = SharedFileScene(seed: seed)
        let machine = SharedFileScene.Machine(seed: seed)
        let disk = machine.disk
        let endings = scene.run(scene.shards, on: machine)
        #expect(scene.flaw(disk, endings) == nil, "replay with seed \(seed)")
        #expect(endings.contains("assembled"))
    }

    @Test("Tasks that run one after the other wait for the last", arguments: UInt64(0)..<8)
    func apart(seed: UInt64) {
        let scene = SharedFileScene(seed: seed, length: 12 << 10)
        let machine = SharedFileScene.Machine(seed: seed)
        let disk = machine.disk
        var endings: [String] = []
        for shard in scene.shards.shuffled() { endings += scene.run([shard], on: machine) }
        #expect(endings == Array(repeating: "waiting", count: scene.count - 1) + ["assembled"], "\(endings)")
        #expect(scene.flaw(disk, endings) == nil, "replay with seed \(seed)")
    }

    @Test("Four tasks whose machines have a link each take less than a 3.6th of the time of one")
    func links() {
        func time(_ count: Int) -> Duration {
            var scene = SharedFileScene(seed: 1, length: 512 << 10)
            // A link has four times a connection's rate.
            (scene.count, scene.segments, scene.rate, scene.chunkMax) = (count, 4, 1 << 13, 1024)
            scene.hasSeparateMachines = true
            let machine = SharedFileScene.Machine(seed: 1)
            let begun = machine.clock.now
            let endings = scene.run(scene.shards, on: machine)
            #expect(scene.flaw(machine.disk, endings) == nil)
            return machine.clock.now - begun
        }
        let (one, four) = (time(1), time(4))
        #expect(one > four * 3.6)
    }

    @Test(
        "After a power cut or a kill before any operation, the same commands make the file",
        arguments: UInt64(0)..<8, [false, true])
    func crashes(seed: UInt64, isPowerCut: Bool) {
        let scene = SharedFileScene(seed: seed)
        let whole = SharedFileScene.Machine(seed: seed)
        _ = scene.run(scene.shards, on: whole)
        let step = max(whole.disk.operations / 40, 1)
        for moment in stride(from: 1 + Int(seed) % step, through: whole.disk.operations, by: step) {
            let machine = SharedFileScene.Machine(seed: seed)
            let disk = machine.disk
            disk.onOperation = { [unowned disk] number in
                guard number == moment else { return }
                if isPowerCut { disk.cutPower() } else { disk.killProcess() }
            }
            _ = scene.run(scene.shards, on: machine)
            disk.onOperation = { _ in }
            let named = disk.names[SharedFileScene.name]
            #expect(named == nil || named?.bytes == scene.version.bytes, "seed \(seed), operation \(moment)")
            let endings = scene.run(scene.shards, on: machine, round: 1)
            #expect(scene.flaw(disk, endings) == nil, "seed \(seed), operation \(moment), power cut \(isPowerCut)")
        }
    }

    /// A scene of several tasks that were all killed at one moment, and the task that does not come back.
    private static func killed(
        seed: UInt64, isPowerCut: Bool = false
    ) -> (scene: SharedFileScene, machine: SharedFileScene.Machine, dead: Shard, SplitMix64)? {
        var scene = SharedFileScene(seed: seed)
        guard scene.count > 1 else { return nil }
        // So slow that some tasks have a manifest, which a short range gets after five seconds.
        scene.rate = 1 << (7 + Int(seed % 4))
        scene.patience = .seconds(20)
        var generator = SplitMix64(seed: seed ^ 0x5EED)
        let whole = SharedFileScene.Machine(seed: seed)
        _ = scene.run(scene.shards, on: whole)
        let moment = Int.random(in: 1...whole.disk.operations, using: &generator)
        let machine = SharedFileScene.Machine(seed: seed)
        Self.crash(machine.disk, at: moment, isPowerCut: isPowerCut)
        _ = scene.run(scene.shards, on: machine)
        machine.disk.onOperation = { _ in }
        let dead = scene.shards[Int.random(in: 0..<scene.count, using: &generator)]
        return (scene, machine, dead, generator)
    }

    private static func crash(_ disk: SimulatedDisk, at moment: Int, isPowerCut: Bool) {
        disk.onOperation = { [unowned disk] number in
            guard number == moment else { return }
            if isPowerCut { disk.cutPower() } else { disk.killProcess() }
        }
    }

    @Test(
        "Tasks that are done make the file without one that was killed and does not come back",
        arguments: UInt64(0)..<48, [false, true])
    func takenOver(seed: UInt64, isPowerCut: Bool) {
        guard let (scene, machine, dead, _) = Self.killed(seed: seed, isPowerCut: isPowerCut) else { return }
        let endings = scene.run(scene.shards.filter { $0 != dead }, on: machine, round: 1)
        #expect(scene.flaw(machine.disk, endings) == nil, "seed \(seed), power cut \(isPowerCut)")
    }

    @Test("A task that comes back while others fetch its range does no harm", arguments: UInt64(0)..<96)
    func takenOverFromTheLiving(seed: UInt64) {
        guard case (var scene, let machine, let dead, var generator)? = Self.killed(seed: seed) else { return }
        // The others may find it too slow while it runs, too.
        scene.patience = .seconds(Int.random(in: 1...20, using: &generator))
        let delay = Duration.seconds(Int.random(in: 0...60, using: &generator))
        let living = scene.shards.filter { $0 != dead }
        let endings = scene.run(living + [dead], on: machine, round: 1, delays: [dead: delay])
        #expect(machine.disk.names[SharedFileScene.name]?.bytes == scene.version.bytes, "seed \(seed): \(endings)")
        #expect(endings.dropLast().allSatisfy { ["assembled", "already"].contains($0) }, "seed \(seed): \(endings)")
        // It may have found that its part is gone. Then the same command finds the file complete.
        scene.patience = nil
        #expect(scene.run([dead], on: machine, round: 2) == ["already"], "seed \(seed): \(endings)")
    }

    /// The task whose range it is still receives the plan's version, over a connection from before the change.
    @Test("A task that takes a range over writes nothing of a version that the server has since", arguments: 1...8)
    func changedBeforeTakeOver(seconds: Int) {
        var scene = SharedFileScene(seed: 2, length: 12 << 10)
        (scene.count, scene.segments) = (2, 1)
        let machine = SharedFileScene.Machine(seed: 2)
        #expect(scene.run([scene.shards[0]], on: machine) == ["waiting"])
        scene.rate = 128
        scene.patience = .seconds(1)
        var generator = SplitMix64(seed: UInt64(seconds))
        let later = SimulatedNetwork.version(2, count: 12 << 10, using: &generator)
        scene.origin.versionLater = (machine.clock.now + .seconds(seconds), later)
        let endings = scene.run(scene.shards, on: machine, round: 1)
        let file = machine.disk.names[SharedFileScene.name]
        #expect(file == nil || file?.bytes == scene.version.bytes, "\(endings)")
    }

    /// No response of the first task states a digest. Those of the second do, in heads or in trailers.
    @Test(
        "A digest that the server states only to one of the tasks counts for the file", arguments: 0..<4, [false, true])
    func lateDigest(seed: UInt64, isTrailing: Bool) {
        var scene = SharedFileScene(seed: seed, length: 12 << 10)
        (scene.count, scene.segments) = (2, 1)
        let machine = SharedFileScene.Machine(seed: seed)
        #expect(scene.run([scene.shards[0]], on: machine) == ["waiting"])
        scene.origin.digests = SimulatedOrigin.Digests()
        scene.origin.digests?.whole = isTrailing ? 0 : 1000
        scene.origin.digests?.trailing = isTrailing ? 1000 : 0
        scene.origin.digests?.wrong = 1000
        let endings = scene.run([scene.shards[1]], on: machine, round: 1)
        #expect(machine.disk.names[SharedFileScene.name] == nil, "\(endings)")
        #expect(endings.allSatisfy { $0.contains("integrity") }, "\(endings)")
    }

    @Test("A task that waits fails if the records are removed, because the file is not there")
    func removedRecords() throws {
        let scene = SharedFileScene(seed: 2, length: 12 << 10)
        let machine = SharedFileScene.Machine(seed: 2)
        let storage = machine.disk.storage()
        let file = scene.file(in: storage, machine)
        let request = DownloadRequest(try SourceURL("http://origin/file0"), to: .file("file0"))
        let resource = RemoteResource(
            completeLength: 12 << 10,
            validator: Validator(entityTag: EntityTag(fieldValue: "\"a\""), lastModified: nil))
        let executor = SeededExecutor(seed: 2)
        let box = Ending()
        _ = Task(executorPreference: executor) {
            let text: String
            do {
                let plan = try await file.begin(
                    id: 1, request, of: resource, count: 2, length: 12 << 10)
                try storage.remove("\(file.directory)/plan")
                text = "\(try await file.assemble(plan, ifExists: .verify, run: 1))"
            } catch {
                text = "\(error)"
            }
            box.text.withLock { $0 = text }
        }
        while box.text.withLock({ $0 == nil }) {
            guard executor.runOne() || machine.clock.advance() else { break }
        }
        let text = box.text.withLock { $0 } ?? "nothing"
        #expect(text.hasPrefix("state: the records of the tasks were removed"), "\(text)")
    }

    @Test("The record of a task of an earlier plan is not one of this plan")
    func recordOfEarlierPlan() throws {
        let scene = SharedFileScene(seed: 2, length: 12 << 10)
        let machine = SharedFileScene.Machine(seed: 2)
        let disk = machine.disk
        #expect(scene.count > 1)
        #expect(scene.run([scene.shards[0]], on: machine) == ["waiting"])
        // What remains if a task renames its record while another one removes the files.
        let storage = disk.storage()
        let file = scene.file(in: storage, machine)
        let plan = try #require(try file.plan())
        try storage.remove("\(file.directory)/plan")
        try storage.remove(file.dataPath(of: plan.id))
        let endings = scene.run(Array(scene.shards.dropFirst()), on: machine, round: 1)
        #expect(endings.allSatisfy { $0 == "waiting" }, "\(endings)")
        #expect(disk.names[SharedFileScene.name] == nil)
        #expect(scene.run([scene.shards[0]], on: machine, round: 2) == ["assembled"])
        #expect(disk.names[SharedFileScene.name]?.bytes == scene.version.bytes)
    }

    @Test(
        "After a kill or a power cut while tasks fetch the range of another one, the same commands make the file",
        arguments: UInt64(0)..<24, [false, true])
    func takingOverCrashes(seed: UInt64, isPowerCut: Bool) {
        guard let (scene, whole, dead, _) = Self.killed(seed: seed) else { return }
        let living = scene.shards.filter { $0 != dead }
        let before = whole.disk.operations
        _ = scene.run(living, on: whole, round: 1)
        let step = max((whole.disk.operations - before) / 10, 1)
        for moment in stride(from: before + 1 + Int(seed) % step, through: whole.disk.operations, by: step) {
            guard let (_, machine, _, _) = Self.killed(seed: seed) else { return }
            Self.crash(machine.disk, at: moment, isPowerCut: isPowerCut)
            _ = scene.run(living, on: machine, round: 1)
            machine.disk.onOperation = { _ in }
            let named = machine.disk.names[SharedFileScene.name]
            #expect(named == nil || named?.bytes == scene.version.bytes, "seed \(seed), operation \(moment)")
            // With the dead task or without it.
            let shards = seed % 2 == 0 ? scene.shards : living
            let endings = scene.run(shards, on: machine, round: 2)
            #expect(
                scene.flaw(machine.disk, endings) == nil, "seed \(seed), operation \(moment), power cut \(isPowerCut)")
        }
    }

    @Test("What a task left that was killed at the very end is removed by the next run, which finds the file complete")
    func rest() throws {
        let scene = SharedFileScene(seed: 2)
        let machine = SharedFileScene.Machine(seed: 2)
        _ = scene.run(scene.shards, on: machine)
        let storage = machine.disk.storage()
        let directory = scene.file(in: storage, machine).directory
        #expect(try storage.status(of: directory) == nil)
        try storage.makeDirectory(directory)
        #expect(scene.run([scene.shards[0]], on: machine, round: 1) == ["already"])
        #expect(try storage.status(of: directory) == nil)
        try storage.makeDirectory(directory)
        try storage.open("\(directory)/1-of-2.piece-0.a1\(DestinationPaths.partSuffix)", .create).close()
        #expect(scene.run([scene.shards[0]], on: machine, round: 2) == ["already"])
        #expect(try storage.status(of: directory) == nil)
        // Another program's file stays.
        try storage.makeDirectory(directory)
        try storage.open("\(directory)/notes", .create).close()
        #expect(scene.run([scene.shards[0]], on: machine, round: 3) == ["already"])
        #expect(try storage.names(in: directory).sorted() == [".", "..", "notes"])
    }

    @Test("A draft that a task left which was killed when it began is removed with the records")
    func leftDraft() throws {
        let scene = SharedFileScene(seed: 2)
        let machine = SharedFileScene.Machine(seed: 2)
        let storage = machine.disk.storage()
        let directory = scene.file(in: storage, machine).directory
        try storage.makeDirectory(directory)
        try storage.open("\(directory)/data-1", .create).close()
        try storage.open("\(directory)/data-1.plan", .create).close()
        let endings = scene.run(scene.shards, on: machine)
        #expect(scene.flaw(machine.disk, endings) == nil)
    }

    @Test("The status of a task is that of its record")
    func status() throws {
        let scene = SharedFileScene(seed: 2, length: 12 << 10)
        let machine = SharedFileScene.Machine(seed: 2)
        let endings = scene.run([scene.shards[0]], on: machine)
        #expect(endings == ["waiting"])
        let file = scene.file(in: machine.disk.storage(), machine)
        let plan = try #require(try file.plan())
        let tasks = try file.tasks(plan)
        #expect(tasks.map(\.isComplete) == [true] + Array(repeating: false, count: scene.count - 1))
        #expect(tasks.map(\.range) == plan.division.shards.map { plan.division.range(of: $0) })
    }

    @Test("With a wrong digest the file never appears, and its bytes are kept")
    func wrongDigest() throws {
        var scene = SharedFileScene(seed: 5, length: 12 << 10)
        scene.digests = [try #require(ExpectedDigest("md5=d41d8cd98f00b204e9800998ecf8427e"))]
        let machine = SharedFileScene.Machine(seed: 5)
        let disk = machine.disk
        let endings = scene.run(scene.shards, on: machine)
        #expect(endings.contains { $0.hasPrefix("integrity: the file's md5 is ") }, "\(endings)")
        #expect(disk.names[SharedFileScene.name] == nil)
        #expect(disk.names.contains { $0.key.contains("/data-") && $0.value.bytes == scene.version.bytes })
    }

    @Test("Tasks that get different versions of the file do not make one of them")
    func versions() throws {
        var scene = SharedFileScene(seed: 2, length: 12 << 10)
        let machine = SharedFileScene.Machine(seed: 2)
        let disk = machine.disk
        #expect(scene.count > 1)
        _ = scene.run([scene.shards[0]], on: machine)
        var generator = SplitMix64(seed: 9)
        scene.origin = SimulatedOrigin(SimulatedNetwork.version(2, count: 12 << 10, using: &generator))
        scene.origin.identity = .strong
        for shard in scene.shards.dropFirst() {
            let ending = scene.run([shard], on: machine)
            #expect(ending[0].hasPrefix("changed: the tasks would fetch different files"), "\(ending)")
        }
        #expect(disk.names[SharedFileScene.name] == nil)
    }

    @Test(
        "Damage of the shared file is found, with a digest and without, and only the damaged range is fetched again",
        arguments: [false, true])
    func damage(hasDigest: Bool) throws {
        var scene = SharedFileScene(seed: 2, length: 12 << 10)
        let machine = SharedFileScene.Machine(seed: 2)
        let disk = machine.disk
        let digest = RunningDigest.hex(.sha256, scene.version.bytes)
        if hasDigest { scene.digests = [try #require(ExpectedDigest(.sha256, hex: digest))] }
        for shard in scene.shards.dropLast() { _ = scene.run([shard], on: machine) }
        let data = try #require(disk.names.first { $0.key.contains("/data-") })
        data.value.bytes[3] ^= 1
        let first = scene.run([scene.shards[scene.count - 1]], on: machine)
        #expect(first[0].hasPrefix("integrity: the bytes of 1/\(scene.count) on disk are not"), "\(first)")
        #expect(disk.names[SharedFileScene.name] == nil)
        let endings = scene.run([scene.shards[0]], on: machine, round: 1)
        #expect(endings == ["assembled"])
        #expect(scene.flaw(disk, endings) == nil)
    }
}

extension RunningDigest {
    static func hex(_ algorithm: ExpectedDigest.Algorithm, _ bytes: [UInt8]) -> String {
        var digest = RunningDigest(algorithm)
        bytes.withUnsafeBytes { digest.update($0) }
        return digest.hex
    }
}
