import SegmentedDownloadCore
import Simulator
import Synchronization
import Testing

@testable import SegmentedDownload

/// What later requests make of a plan whose file has its name already: its tasks were killed after the rename.
@Suite("A plan that tasks left after the file had got its name")
struct LeftoverPlanTests {
    private typealias Policy = DownloadOptions.ExistingFilePolicy

    /// Tasks that are all killed at one moment.
    private struct Left {
        var scene: SharedFileScene
        let machine: SharedFileScene.Machine
        let file: SharedFile
        let plan: SharedFilePlan
        private var round: UInt64 = 0

        init(
            hasAttributes: Bool = true, _ configure: (inout SharedFileScene) -> Void = { _ in },
            killedOnce isReached: @escaping (SimulatedDisk, SharedFileScene) -> Bool
        ) throws {
            var scene = SharedFileScene(seed: 2, length: 12 << 10)
            configure(&scene)
            let machine = SharedFileScene.Machine(seed: 2)
            let disk = machine.disk
            disk.hasAttributes = hasAttributes
            disk.onOperation = { [unowned disk, scene] _ in if isReached(disk, scene) { disk.killProcess() } }
            _ = scene.run(scene.shards.map { SharedFileScene.Start($0) }, on: machine)
            disk.onOperation = { _ in }
            (self.scene, self.machine) = (scene, machine)
            self.file = scene.file(in: disk.storage(), machine)
            self.plan = try #require(try self.file.plan())
        }

        /// Tasks that were killed between the rename and the removal of the records.
        static func afterRename(
            hasAttributes: Bool = true, _ configure: (inout SharedFileScene) -> Void = { _ in }
        ) throws -> Left {
            let left = try Left(hasAttributes: hasAttributes, configure) { disk, _ in
                disk.names[SharedFileScene.name] != nil
            }
            #expect(left.bytes == left.scene.version.bytes)
            #expect(try left.file.leftover() == left.plan)
            return left
        }

        /// Tasks that were killed when all had completed their ranges, and before the file had its name.
        static func complete() throws -> Left {
            let left = try Left { disk, scene in
                scene.shards.allSatisfy { disk.names["\(SharedFileScene.name).segdl-tasks/\($0.fileName)"] != nil }
            }
            #expect(left.bytes == nil)
            #expect(try left.file.tasks(left.plan).allSatisfy(\.isComplete))
            return left
        }

        var bytes: [UInt8]? { self.machine.disk.names[SharedFileScene.name]?.bytes }

        /// Whether nothing is left besides the file.
        var isClear: Bool {
            (try? self.file.storage.names(in: "."))?.sorted() == [".", "..", SharedFileScene.name]
        }

        /// Changes a byte of the file as another program does.
        func damage() {
            guard let inode = self.machine.disk.names[SharedFileScene.name] else { return }
            inode.bytes[3] ^= 1
            inode.modified += 1
        }

        /// Replaces the file on the server.
        mutating func publish() -> [UInt8] {
            var generator = SplitMix64(seed: 9)
            let version = SimulatedNetwork.version(2, count: 12 << 10, using: &generator)
            self.scene.origin = SimulatedOrigin(version)
            self.scene.origin.identity = .strong
            return version.bytes
        }

        /// Runs tasks, and returns how they have ended.
        mutating func run(_ shards: [Shard]? = nil) -> [String] {
            self.round += 1
            let starts = (shards ?? self.scene.shards).map { SharedFileScene.Start($0) }
            return self.scene.run(starts, on: self.machine, round: self.round)
        }

        /// Completes the file as `segdl assemble` does, and returns the outcome, or the error's text.
        func assemble(_ digests: [ExpectedDigest] = [], ifExists: Policy = .verify) -> String {
            let (file, plan, box) = (self.file, self.plan, Box())
            let executor = SeededExecutor(seed: 2)
            _ = Task(executorPreference: executor) {
                let text: String
                do {
                    text = "\(try await file.assemble(plan, digests: digests, ifExists: ifExists, run: 1))"
                } catch {
                    text = "\(error)"
                }
                box.text.withLock { $0 = text }
            }
            while box.text.withLock({ $0 == nil }) {
                guard executor.runOne() || self.machine.clock.advance() else { break }
            }
            return box.text.withLock { $0 } ?? "nothing"
        }

        func digest(_ bytes: [UInt8]) throws -> ExpectedDigest {
            try #require(ExpectedDigest(.sha256, hex: RunningDigest.hex(.sha256, bytes)))
        }
    }

    private final class Box: Sendable {
        let text = Mutex<String?>(nil)
    }

    // MARK: Tasks

    @Test("The same request finds the file complete, and removes the plan", arguments: [false, true])
    func same(hasDigest: Bool) throws {
        var left = try Left.afterRename()
        if hasDigest { left.scene.digests = [try left.digest(left.scene.version.bytes)] }
        #expect(left.run([left.scene.shards[0]]) == ["already"])
        #expect(left.isClear)
    }

    @Test("A request for other bytes does not take the file for them", arguments: [false, true])
    func other(hasDigest: Bool) throws {
        var left = try Left.afterRename()
        let before = left.bytes
        let other = left.publish()
        if hasDigest { left.scene.digests = [try left.digest(other)] }
        #expect(left.run([left.scene.shards[0]]) == ["different"])
        #expect(left.bytes == before && left.isClear)
    }

    @Test(
        "A request that replaces the file begins anew, although all of its tasks find the plan",
        arguments: [DownloadOptions.ExistingFilePolicy.update, .overwrite], [false, true])
    func replaced(policy: DownloadOptions.ExistingFilePolicy, hasDigest: Bool) throws {
        var left = try Left.afterRename()
        let other = left.publish()
        left.scene.ifExists = policy
        if hasDigest { left.scene.digests = [try left.digest(other)] }
        let endings = left.run()
        #expect(endings.contains("assembled"), "\(endings)")
        #expect(left.bytes == other && left.isClear, "\(endings)")
    }

    @Test("A file that was damaged since is not complete, with a digest and without", arguments: [false, true])
    func damaged(hasDigest: Bool) throws {
        var left = try Left.afterRename()
        if hasDigest { left.scene.digests = [try left.digest(left.scene.version.bytes)] }
        left.damage()
        #expect(left.run([left.scene.shards[0]]) == ["different"])
        left.scene.ifExists = .update
        let endings = left.run()
        #expect(endings.contains("assembled"), "\(endings)")
        #expect(left.bytes == left.scene.version.bytes && left.isClear)
    }

    @Test("Another number of tasks completes the ranges of others only for the plan's version")
    func otherCount() throws {
        var left = try Left.complete()
        let (count, original) = (left.scene.count, left.scene.origin)
        left.scene.count = count + 1
        _ = left.publish()
        let refused = left.run([left.scene.shards[0]])
        #expect(refused[0].hasPrefix("changed: the tasks would fetch different files"), "\(refused)")
        #expect(left.bytes == nil)
        left.scene.origin = original
        left.scene.digests = [try left.digest([])]
        let wrong = left.run([left.scene.shards[0]])
        #expect(wrong[0].hasPrefix("integrity: the file's sha256 is "), "\(wrong)")
        #expect(left.bytes == nil)
        left.scene.digests = []
        #expect(left.run([left.scene.shards[0]]) == ["assembled"])
        #expect(left.bytes == left.scene.version.bytes && left.isClear)
    }

    // MARK: assemble

    @Test("assemble compares a digest, although the file has its name already")
    func assembleWithDigest() throws {
        let left = try Left.afterRename()
        let text = left.assemble([try left.digest([])])
        #expect(text.hasPrefix("integrity: the file's sha256 is "), "\(text)")
        #expect(try left.file.leftover() == left.plan, "the records are kept")
        let bytes = try #require(left.bytes)
        #expect(left.assemble([try left.digest(bytes)]).hasPrefix("assembled("))
        #expect(left.isClear)
    }

    @Test("assemble finds that the file was damaged since it had got its name")
    func assembleDamaged() throws {
        let left = try Left.afterRename()
        left.damage()
        let text = left.assemble()
        #expect(text.hasPrefix("integrity: the bytes of file0 are not those that were received"), "\(text)")
        #expect(try left.file.leftover() == left.plan)
        left.machine.disk.names[SharedFileScene.name]?.bytes[3] ^= 1
        #expect(left.assemble().hasPrefix("assembled("), "with another time and the same bytes")
        #expect(left.isClear)
    }

    @Test("Whether another file is replaced depends on the request that completes the file, not on the first task's")
    func policy() throws {
        let left = try Left.complete()
        try left.file.storage.open(SharedFileScene.name, .create).close()
        #expect(left.assemble().hasPrefix("exists: "))
        #expect(left.bytes == [])
        #expect(left.assemble(ifExists: .update).hasPrefix("assembled("))
        #expect(left.bytes == left.scene.version.bytes && left.isClear)
    }

    // MARK: The record

    @Test("The record of a file that was not synced says so", arguments: [SyncPolicy.none, .end])
    func synced(policy: SyncPolicy) throws {
        let left = try Left.afterRename { $0.syncPolicy = policy }
        let inode = try #require(left.machine.disk.names[SharedFileScene.name])
        let attribute = try #require(inode.attributes[FinishedRecord.attribute])
        let record = try #require(FinishedRecord(decoding: attribute))
        #expect(record.isSynced == (policy != .none) && record.modified == inode.modified)
    }

    @Test("On a file system without attributes the file's record is beside the plan until both are removed")
    func withoutAttributes() throws {
        var left = try Left.afterRename(hasAttributes: false)
        #expect(try left.file.storage.names(in: left.file.directory).contains { $0.hasSuffix(".placed") })
        #expect(left.run([left.scene.shards[0]]) == ["already"])
        #expect(left.isClear)

        let whole = try Left.afterRename(hasAttributes: false)
        #expect(whole.assemble().hasPrefix("assembled("))
        #expect(whole.isClear)

        var damaged = try Left.afterRename(hasAttributes: false)
        // The record is no reason not to read the file, even if its time is the same.
        damaged.machine.disk.names[SharedFileScene.name]?.bytes[3] ^= 1
        #expect(damaged.run([damaged.scene.shards[0]]) == ["different"])
        #expect(damaged.isClear)
    }

    @Test("Without a record of the file, only a digest makes it complete")
    func withoutRecord() throws {
        let left = try Left.afterRename(hasAttributes: false)
        let storage = left.file.storage
        for name in try storage.names(in: left.file.directory) where name.hasSuffix(".placed") {
            try storage.remove("\(left.file.directory)/\(name)")
        }
        let text = left.assemble()
        #expect(text.hasPrefix("state: no record shows whether file0 is still as it was verified"), "\(text)")
        #expect(try left.file.leftover() == left.plan)
        let bytes = try #require(left.bytes)
        #expect(left.assemble([try left.digest(bytes)]).hasPrefix("assembled("))
        #expect(left.isClear)
    }
}
