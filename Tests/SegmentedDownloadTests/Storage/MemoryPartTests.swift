import Foundation
import SystemPackage
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// A short file is in memory until it is complete, or until a pause or checkpoint gives it a part.
@Suite("A part in memory")
struct MemoryPartTests {
    private static let id: UInt64 = 7

    /// Runs `body` with a job of 100 bytes that was surveyed and prepared in memory.
    private static func run(
        _ change: @escaping (inout DownloadRequest) -> Void = { _ in }, arrange: (WatchedStorage) -> Void = { _ in },
        _ body: (WatchedStorage, DownloadJob, DestinationPaths) async throws -> Void
    ) async throws {
        try await WatchedJob.run { disk, directory in
            arrange(disk)
            let job = try WatchedJob.job(disk, directory, memory: PartMemory(), change)
            _ = try await job.survey()
            #expect(try job.prepareInMemory(WatchedJob.preparation(), id: Self.id))
            #expect(disk.take() == [] && disk.openNames == [])
            try await body(disk, job, DestinationPaths(directory: directory, name: "file.bin"))
            job.close()
        }
    }

    private static func names(_ disk: WatchedStorage, _ paths: DestinationPaths) throws -> [String] {
        try disk.names(in: paths.directory).filter { $0 != "." && $0 != ".." }.sorted()
    }

    // MARK: Complete

    @Test("A complete file is written without a name, described and synced, and then named and its name synced")
    func placed() async throws {
        try await Self.run { disk, job, paths in
            try WatchedJob.fill(job, 0..<60, 60..<100)
            try await job.place(length: 100, evidence: .validator)
            #expect(
                disk.take() == [
                    "create unnamed file.bin", "write file.bin", "describe file.bin", "sync all of file.bin",
                    "name file.bin", "sync names",
                ])
            #expect(try Self.names(disk, paths) == ["file.bin"])
            #expect(try WatchedJob.contents(paths.destination) == WatchedPart.bytes(0..<100))
            #expect(disk.openNames.isEmpty)
            let status = try #require(try disk.status(of: paths.destination))
            let other = RequestedContent(DownloadRequest(try SourceURL("http://host/other.bin")), [:])
            #expect(job.placed.hasOther(than: other, status, at: paths.destination, in: .run))
        }
    }

    @Test("The next run finds the file by its record")
    func found() async throws {
        try await Self.run { disk, job, paths in
            try WatchedJob.fill(job, 0..<100)
            try await job.place(length: 100, evidence: .validator)
            let next = try WatchedJob.job(disk, paths.directory, memory: PartMemory())
            guard case .existing(let file) = try await next.survey().survey else {
                Issue.record("the file was not found")
                return
            }
            #expect(file.record?.validator == WatchedPart.resource(100).validator)
        }
    }

    @Test("A file in memory whose pieces differ is not named")
    func pieces() async throws {
        let wrong = Metalink.PieceDigests(
            length: 100, algorithm: .crc32, hexes: [CRC32(of: WatchedPart.bytes(0..<99)).hex])
        try await Self.run({ $0.pieceDigests = wrong }) { _, job, paths in
            try WatchedJob.fill(job, 0..<100)
            #expect(await failureCode { try await job.place(length: 100, evidence: .validator) } == .integrity)
            #expect(!FileManager.default.fileExists(atPath: paths.destination))
        }
    }

    @Test("Without syncs neither data nor name is synced")
    func unsynced() async throws {
        try await Self.run({ $0.syncPolicy = .none }) { disk, job, _ in
            try WatchedJob.fill(job, 0..<100)
            try await job.place(length: 100, evidence: .validator)
            #expect(
                disk.take() == ["create unnamed file.bin", "write file.bin", "describe file.bin", "name file.bin"])
        }
    }

    @Test("A name that is taken is not replaced, and the file keeps its bytes in a part")
    func taken() async throws {
        try await Self.run { disk, job, paths in
            disk.before("name file.bin") { try Data("mine".utf8).write(to: URL(fileURLWithPath: paths.destination)) }
            try WatchedJob.fill(job, 0..<100)
            #expect(await failureCode { try await job.place(length: 100, evidence: .validator) } == .exists)
            #expect(try WatchedJob.contents(paths.destination) == Array("mine".utf8))
            #expect(try await job.part?.checkpoint(isPause: true) == 100)
            #expect(try Self.names(disk, paths) == ["file.bin", "file.bin.segdl", "file.bin.segdl-part"])
        }
    }

    @Test("Where files cannot be without a name, or cannot be named later, a part is created and renamed")
    func named() async throws {
        let calls = [
            "create file.bin.segdl-part", "truncate to 0 file.bin.segdl-part", "allocate 100 file.bin.segdl-part",
            "write file.bin.segdl-part", "describe file.bin.segdl-part", "sync all of file.bin.segdl-part",
            "rename file.bin.segdl-part to file.bin", "sync names",
        ]
        for cannotOpen in [true, false] {
            try await Self.run(
                arrange: { disk in
                    if cannotOpen { disk.forbidUnnamedFiles() } else { disk.fail("name file.bin", .unsupported) }
                }
            ) { disk, job, paths in
                try WatchedJob.fill(job, 0..<100)
                try await job.place(length: 100, evidence: .validator)
                let made = disk.take().filter { call in
                    call.hasPrefix("rename") || call == "sync names" || call.hasSuffix(".segdl-part")
                }
                // Whether the record is completed after the rename depends on the time that all this took.
                var completed = calls
                completed.insert("describe file.bin.segdl-part", at: calls.count - 1)
                #expect([calls, completed].contains(made))
                #expect(try Self.names(disk, paths) == ["file.bin"])
                #expect(try WatchedJob.contents(paths.destination) == WatchedPart.bytes(0..<100))
            }
        }
    }

    @Test("A file gets the permissions of any new file")
    func permissions() async throws {
        try await Self.run(arrange: { $0.permitNew(0o664) }) { disk, job, paths in
            try WatchedJob.fill(job, 0..<100)
            try await job.place(length: 100, evidence: .validator)
            let status = try #require(try disk.status(of: paths.destination))
            #expect(status.ownership.permissions == 0o664)
        }
    }

    @Test("A wrong digest leaves nothing on disk")
    func wrong() async throws {
        let digest = try #require(ExpectedDigest(.crc32, hex: "00000000"))
        try await Self.run({ $0.digests = [digest] }) { disk, job, paths in
            try WatchedJob.fill(job, 0..<100)
            #expect(await failureCode { try await job.place(length: 100, evidence: .validator) } == .integrity)
            #expect(try Self.names(disk, paths) == [] && disk.take() == [])
        }
    }

    @Test(
        "If a step fails, the file has no name, and a pause still keeps its bytes",
        arguments: ["create unnamed", "write", "sync all of", "name"])
    func failed(call: String) async throws {
        try await Self.run { disk, job, paths in
            disk.fail(call + " file.bin", .noSpace)
            try WatchedJob.fill(job, 0..<100)
            #expect(await condition { try await job.place(length: 100, evidence: .validator) } == .noSpace)
            #expect(try Self.names(disk, paths) == [] && disk.openNames == [])
            #expect(try await job.part?.checkpoint(isPause: true) == 100)
        }
    }

    @Test("If the name cannot be synced, the file is in place and no part is created any more")
    func nameUnsynced() async throws {
        try await Self.run { disk, job, paths in
            disk.fail("sync names", .other)
            try WatchedJob.fill(job, 0..<100)
            #expect(await failureCode { try await job.place(length: 100, evidence: .validator) } == .file)
            _ = try await job.part?.checkpoint(isPause: true)
            #expect(try Self.names(disk, paths) == ["file.bin"])
        }
    }

    // MARK: Interrupted

    @Test("A pause gives the bytes a part and a manifest, and what comes later is written to the part")
    func paused() async throws {
        try await Self.run { disk, job, paths in
            let part = try #require(job.part)
            try WatchedJob.fill(job, 0..<50)
            #expect(try await part.checkpoint(isPause: false) == 50)
            #expect(part.memory == nil)
            #expect(try Self.names(disk, paths) == ["file.bin.segdl", "file.bin.segdl-part"])
            #expect(part.header.partIdentity == (try #require(try disk.status(of: paths.part))).identity)
            try WatchedJob.fill(job, 50..<100)
            #expect(try WatchedJob.contents(paths.part) == WatchedPart.bytes(0..<100))
            try await job.place(length: 100, evidence: .validator)
            #expect(try Self.names(disk, paths) == ["file.bin"])
            #expect(try WatchedJob.contents(paths.destination) == WatchedPart.bytes(0..<100))
        }
    }

    @Test("The next run resumes what a pause has kept")
    func resumed() async throws {
        try await Self.run { disk, job, paths in
            try WatchedJob.fill(job, 0..<50)
            _ = try await job.part?.checkpoint(isPause: true)
            job.close()
            let next = try WatchedJob.job(disk, paths.directory, memory: PartMemory())
            guard case .partial(let saved) = try await next.survey().survey else {
                Issue.record("the part was not found")
                return
            }
            #expect(saved.missing == [50..<100] && saved.resource == WatchedPart.resource(100))
            #expect(try !next.prepareInMemory(WatchedJob.preparation(), id: 8))
            next.close()
        }
    }

    @Test("Bytes that arrive while the others are written to the part are there too")
    func storedMeanwhile() async throws {
        try await Self.run { disk, job, paths in
            try WatchedJob.fill(job, 0..<50)
            let part = try #require(job.part)
            disk.before("write file.bin.segdl-part") { try WatchedJob.fill(job, 50..<80) }
            try part.store()
            #expect(part.memory == nil)
            #expect(try WatchedJob.contents(paths.part).prefix(80) == WatchedPart.bytes(0..<80)[...])
        }
    }

    @Test("If the part cannot be written, none is left, and the bytes are kept for another attempt")
    func unstored() async throws {
        try await Self.run { disk, job, paths in
            try WatchedJob.fill(job, 0..<50)
            let part = try #require(job.part)
            disk.fail("write file.bin.segdl-part", .noSpace)
            #expect(await condition { try part.store() } == .noSpace)
            #expect(try Self.names(disk, paths) == [] && disk.openNames == [])
            disk.fail("write file.bin.segdl-part", nil)
            #expect(try await part.checkpoint(isPause: true) == 50)
            #expect(try WatchedJob.contents(paths.part).prefix(50) == WatchedPart.bytes(0..<50)[...])
        }
    }

    @Test("The part of another process is neither used nor deleted")
    func foreign() async throws {
        try await Self.run { disk, job, paths in
            try WatchedJob.fill(job, 0..<50)
            try Data("theirs".utf8).write(to: URL(fileURLWithPath: paths.part))
            let part = try #require(job.part)
            #expect(await condition { try part.store() } == .exists)
            try job.discard()
            #expect(try WatchedJob.contents(paths.part) == Array("theirs".utf8))
        }
    }

    @Test("The manifest of another process's part is not deleted")
    func foreignManifest() async throws {
        try await Self.run { disk, job, paths in
            try WatchedJob.fill(job, 0..<50)
            try await WatchedJob.interrupt(disk, paths.directory)
            let manifest = try WatchedJob.contents(paths.manifest)
            let part = try #require(job.part)
            #expect(await condition { try part.store() } == .exists)
            #expect(try WatchedJob.contents(paths.manifest) == manifest)
        }
    }

    @Test(
        "A file of the user with the manifest's name is neither replaced nor deleted",
        arguments: [".segdl", ".segdl-new"])
    func userFile(suffix: String) async throws {
        try await Self.run { disk, job, paths in
            let path = paths.destination + suffix
            try WatchedJob.fill(job, 0..<50)
            try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
            let part = try #require(job.part)
            #expect(await condition { try await part.checkpoint(isPause: true) } == .exists)
            #expect(try WatchedJob.contents(path) == Array("precious".utf8))
            #expect(try !Self.names(disk, paths).contains("file.bin.segdl-part"))
            #expect(part.lengthKept == 0)
        }
    }

    @Test("What was not stored is not counted as kept, and what was stored is")
    func kept() async throws {
        try await Self.run { _, job, _ in
            try WatchedJob.fill(job, 0..<50)
            let part = try #require(job.part)
            #expect(part.claimedLength == 50 && part.lengthKept == 0)
            try part.store()
            #expect(part.lengthKept == 50)
        }
    }

    @Test("A file in place whose name could not be synced does not have another process's part deleted")
    func placedAndDiscarded() async throws {
        try await Self.run { disk, job, paths in
            disk.fail("sync names", .other)
            try WatchedJob.fill(job, 0..<100)
            #expect(await failureCode { try await job.place(length: 100, evidence: .validator) } == .file)
            try Data("theirs".utf8).write(to: URL(fileURLWithPath: paths.part))
            try job.discard()
            #expect(try WatchedJob.contents(paths.part) == Array("theirs".utf8))
        }
    }

    // MARK: When

    @Test("A file is not in memory if it is empty, too long, replaces another, or has something beside it")
    func onDisk() async throws {
        try await WatchedJob.run { disk, directory in
            let memory = PartMemory()
            func isInMemory(
                _ preparation: Preparation = WatchedJob.preparation(),
                _ change: @escaping (inout DownloadRequest) -> Void = { _ in }
            ) async throws -> Bool {
                let job = try WatchedJob.job(disk, directory, memory: memory, change)
                defer { job.close() }
                _ = try await job.survey()
                return try job.prepareInMemory(preparation, id: Self.id)
            }
            #expect(try await isInMemory())
            #expect(try await isInMemory(WatchedJob.preparation(length: PartMemory.lengthMax)))
            #expect(try await !isInMemory(WatchedJob.preparation(length: PartMemory.lengthMax + 1)))
            #expect(try await !isInMemory(WatchedJob.preparation(length: 0)))
            #expect(try await !isInMemory(WatchedJob.preparation(of: WatchedPart.resource(nil))))
            #expect(try await !isInMemory(WatchedJob.preparation(setsAside: true)))
            #expect(try await !isInMemory { $0.ifExists = .overwrite })
            #expect(try await !isInMemory { $0.ifExists = .rename })
            let other = WatchedJob.preparation(name: "other.bin")
            #expect(try await !isInMemory(other) { $0.destination = .directory(FilePath(directory), name: nil) })
            for suffix in [".segdl", ".segdl-new", ".segdl-old.segdl"] {
                let path = "\(directory)/file.bin\(suffix)"
                try Data().write(to: URL(fileURLWithPath: path))
                #expect(try await !isInMemory())
                try FileManager.default.removeItem(atPath: path)
            }
        }
    }

    @Test("Files that are in memory at the same time share a limit, and give back what they took")
    func limit() throws {
        let memory = PartMemory()
        var files: [MemoryFile] = []
        while case .memory(let file) = memory.place(for: "\(files.count)", length: PartMemory.lengthMax) {
            files.append(file)
        }
        #expect(Int64(files.count) * PartMemory.lengthMax == PartMemory.totalMax)
        guard case .disk = memory.place(for: "another", length: 1) else {
            Issue.record("there is more memory than the limit")
            return
        }
        files[0].close()
        guard case .memory = memory.place(for: "0", length: PartMemory.lengthMax) else {
            Issue.record("a closed file keeps its memory or its name")
            return
        }
    }

    @Test("The memory is free once the bytes are stored, and the name once the file is closed; then nothing is written")
    func released() throws {
        let memory = PartMemory()
        guard case .memory(let file) = memory.place(for: "a", length: 10) else {
            Issue.record("there is no memory")
            return
        }
        try file.writeFully([1, 2, 3], at: 0)
        file.close()
        #expect(throws: StorageError.self) { try file.writeFully([4], at: 3) }
        #expect(!file.isInMemory)
        guard case .memory(let next) = memory.place(for: "a", length: 10) else {
            Issue.record("a closed file keeps its name")
            return
        }
        next.close()
    }

    @Test("Bytes written in many places are all stored")
    func scattered() async throws {
        try await Self.run { _, job, paths in
            let part = try #require(job.part)
            // From the end on, so that no two ranges can be joined.
            for offset in stride(from: Int64(99), through: 0, by: -1) {
                try WatchedJob.fill(job, offset..<offset + 1)
            }
            try part.store()
            #expect(try WatchedJob.contents(paths.part) == WatchedPart.bytes(0..<100))
        }
    }

    @Test("A part that cannot be locked for an error is not left behind")
    func unlockable() async throws {
        try await Self.run { disk, job, paths in
            try WatchedJob.fill(job, 0..<50)
            let part = try #require(job.part)
            disk.fail("lock file.bin.segdl-part", .other)
            #expect(await condition { try part.store() } == .other)
            #expect(try Self.names(disk, paths) == [] && disk.openNames == [])
            disk.fail("lock file.bin.segdl-part", nil)
            try part.store()
            #expect(part.lengthKept == 50)
        }
    }

    @Test("Two downloads of a run to one destination exclude each other while the first is in memory")
    func sameDestination() async throws {
        try await WatchedJob.run { disk, directory in
            let memory = PartMemory()
            let (first, second) = (
                try WatchedJob.job(disk, directory, memory: memory), try WatchedJob.job(disk, directory, memory: memory)
            )
            for job in [first, second] { _ = try await job.survey() }
            #expect(try first.prepareInMemory(WatchedJob.preparation(), id: 1))
            #expect(await failureCode { try second.prepareInMemory(WatchedJob.preparation(), id: 2) } == .exists)
            first.close()
            #expect(try second.prepareInMemory(WatchedJob.preparation(), id: 2))
            second.close()
        }
    }
}
