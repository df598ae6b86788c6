import Foundation
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// Manifests are not looked for in a directory that has none.
@Suite("Directories known to have no manifests")
struct KnownDirectoriesTests {
    /// Notes as many further files.
    private static func note(_ files: Int, in directory: String, _ known: KnownDirectories) {
        for number in 0..<files {
            known.noteClear(DestinationPaths(directory: directory, name: "file\(number)"), in: POSIXStorage())
        }
    }

    private static func create(_ name: String, in directory: String) throws {
        try Data().write(to: URL(fileURLWithPath: directory + "/" + name))
    }

    @Test("A directory is known once sixteen files were looked for and it was listed")
    func listed() async throws {
        try await withTemporaryDirectory { directory in
            try Self.create("file.segdl-part", in: directory)
            try Self.create("segdl", in: directory)
            let known = KnownDirectories()
            Self.note(15, in: directory, known)
            #expect(!known.isClear(directory))
            Self.note(1, in: directory, known)
            #expect(known.isClear(directory) && !known.isClear(directory + "/other"))
        }
    }

    @Test(
        "A directory with a manifest is not known, and is listed again at sixty-four files",
        arguments: ["file.segdl", "file.segdl-new", "file.segdl-old.segdl", ".segdl"])
    func left(name: String) async throws {
        try await withTemporaryDirectory { directory in
            try Self.create(name, in: directory)
            let known = KnownDirectories()
            Self.note(63, in: directory, known)
            #expect(!known.isClear(directory))
            try FileManager.default.removeItem(atPath: directory + "/" + name)
            #expect(!known.isClear(directory))
            Self.note(1, in: directory, known)
            #expect(known.isClear(directory))
        }
    }

    @Test("A directory with many names is listed once it has got enough files")
    func long() async throws {
        try await withTemporaryDirectory { directory in
            // With the directory itself and the one above it, one more than sixteen for each of sixteen files.
            for number in 0..<255 { try Self.create("\(number)", in: directory) }
            let known = KnownDirectories()
            Self.note(63, in: directory, known)
            #expect(!known.isClear(directory))
            Self.note(1, in: directory, known)
            #expect(known.isClear(directory))
        }
    }

    @Test("A directory that cannot be listed is not known")
    func unlisted() async throws {
        try await withTemporaryDirectory { directory in
            let known = KnownDirectories()
            Self.note(64, in: directory + "/missing", known)
            #expect(!known.isClear(directory + "/missing"))
        }
    }

    @Test("With many directories all are forgotten")
    func forgotten() async throws {
        try await withTemporaryDirectory { directory in
            let known = KnownDirectories()
            Self.note(16, in: directory, known)
            for number in 1..<KnownDirectories.directoriesMax { Self.note(1, in: "\(directory)/\(number)", known) }
            Self.note(1, in: directory, known)
            #expect(known.isClear(directory))
            Self.note(1, in: directory + "/more", known)
            #expect(!known.isClear(directory))
        }
    }

    // MARK: Downloads

    /// Runs `body` with a job whose directory is known, before its survey.
    private static func run(
        _ change: (inout DownloadRequest) -> Void = { _ in },
        _ body: (WatchedStorage, DownloadJob, DestinationPaths) async throws -> Void
    ) async throws {
        try await WatchedJob.run { disk, directory in
            let memory = PartMemory()
            Self.note(16, in: directory, memory.directories)
            let job = try WatchedJob.job(disk, directory, memory: memory, change)
            try await body(disk, job, DestinationPaths(directory: directory, name: "file.bin"))
            job.close()
        }
    }

    @Test("A short file is fetched without looking for manifests")
    func short() async throws {
        try await Self.run { disk, job, paths in
            for name in ["file.bin.segdl", "file.bin.segdl-new", "file.bin.segdl-old.segdl"] {
                disk.fail("look at \(name)", .other)
            }
            #expect(try await job.survey().survey == .nothing)
            #expect(try job.prepareInMemory(WatchedJob.preparation(), id: 7))
            try WatchedJob.fill(job, 0..<100)
            try await job.place(length: 100, evidence: .validator)
            #expect(try WatchedJob.contents(paths.destination) == WatchedPart.bytes(0..<100))
        }
    }

    @Test(
        "They are looked for if the file may be replaced or renamed, or the directory must exist",
        arguments: [(DownloadOptions.ExistingFilePolicy.overwrite, true), (.rename, true), (.verify, false)])
    func others(policy: DownloadOptions.ExistingFilePolicy, createsDirectories: Bool) async throws {
        try await Self.run { request in
            request.ifExists = policy
            request.createsDirectories = createsDirectories
        } _: { disk, job, _ in
            disk.fail("look at file.bin.segdl", .other)
            #expect(await condition { try await job.survey() } == .other)
        }
    }

    @Test(
        "Only files that may begin in memory make a directory known",
        arguments: [(DownloadOptions.ExistingFilePolicy.verify, true), (.rename, false)])
    func makesKnown(policy: DownloadOptions.ExistingFilePolicy, isKnown: Bool) async throws {
        try await WatchedJob.run { disk, directory in
            let memory = PartMemory()
            for _ in 0..<16 {
                let job = try WatchedJob.job(disk, directory, memory: memory) { $0.ifExists = policy }
                #expect(try await job.survey().survey == .nothing)
            }
            #expect(memory.directories.isClear(directory) == isKnown)
        }
    }

    @Test("An existing file and an interrupted download are found")
    func found() async throws {
        try await Self.run { disk, job, paths in
            try await WatchedJob.interrupt(disk, paths.directory)
            guard case .partial(let saved) = try await job.survey().survey else {
                Issue.record("the part was not found")
                return
            }
            #expect(saved.missing == [50..<100])
        }
        try await Self.run { disk, job, paths in
            try await WatchedJob.place(disk, paths.directory)
            guard case .existing(let file) = try await job.survey().survey else {
                Issue.record("the file was not found")
                return
            }
            #expect(file.length == 100 && file.record != nil)
        }
    }

    @Test("What another process has left meanwhile is found before a part is created on disk")
    func leftMeanwhile() async throws {
        let long = WatchedJob.preparation(length: PartMemory.lengthMax + 1)
        try await Self.run { disk, job, paths in
            #expect(try await job.survey().survey == .nothing)
            try await WatchedJob.interrupt(disk, paths.directory)
            guard case .partial(let saved)? = try await job.prepare(long, id: 8)?.survey else {
                Issue.record("the part was not found")
                return
            }
            #expect(saved.missing == [50..<100])
        }
        try await Self.run { _, job, paths in
            #expect(try await job.survey().survey == .nothing)
            try Data("precious".utf8).write(to: URL(fileURLWithPath: paths.manifest))
            #expect(await failureCode { try await job.prepare(long, id: 8) } == .exists)
            #expect(try WatchedJob.contents(paths.manifest) == Array("precious".utf8))
        }
    }

    @Test("What is noted about a part that was found late is said once")
    func noted() async throws {
        try await Self.run { disk, job, paths in
            let events = job.broadcaster.events()
            _ = try await job.survey()
            try await WatchedJob.interrupt(disk, paths.directory)
            try FileManager.default.removeItem(atPath: paths.manifest)
            let long = WatchedJob.preparation(length: PartMemory.lengthMax + 1)
            #expect(try await job.prepare(long, id: 8) == nil)
            job.broadcaster.finish()
            let notes = await events.reduce(into: [String]()) { notes, event in
                if case .note(let text) = event { notes.append(text) }
            }
            #expect(notes == ["the part file has no manifest; starting over"])
        }
    }

    @Test("A short file that was given a part starts over in it")
    func startsOver() async throws {
        try await Self.run { disk, job, paths in
            _ = try await job.survey()
            #expect(try job.prepareInMemory(WatchedJob.preparation(), id: 7))
            try WatchedJob.fill(job, 0..<50)
            _ = try await job.part?.checkpoint(isPause: false)
            let other = WatchedJob.preparation(tag: "\"b\"")
            #expect(try !job.prepareInMemory(other, id: 8))
            #expect(try await job.prepare(other, id: 8) == nil)
            try WatchedJob.fill(job, 0..<100)
            try await job.place(length: 100, evidence: .validator)
            #expect(try WatchedJob.contents(paths.destination) == WatchedPart.bytes(0..<100))
        }
    }

    @Test("A directory in which a part was set aside is not known any more")
    func setAside() async throws {
        try await Self.run { disk, job, paths in
            let memory = try #require(job.memory)
            try await WatchedJob.interrupt(disk, paths.directory)
            _ = try await job.survey()
            #expect(memory.directories.isClear(paths.directory))
            #expect(try await job.prepare(WatchedJob.preparation(tag: "\"b\"", setsAside: true), id: 8) == nil)
            #expect(try disk.status(of: paths.setAside(slot: 1).manifest) != nil)
            #expect(!memory.directories.isClear(paths.directory))
        }
    }

    @Test("Streams do not make the present directory known")
    func streams() async throws {
        let memory = PartMemory()
        for _ in 0..<16 {
            let job = DownloadJob(
                id: DownloadID(0), request: DownloadRequest(try SourceURL("http://host/file.bin"), to: .file("-")),
                followers: [], storage: POSIXStorage(), placed: PlacedFiles(), output: ByteStream(), memory: memory)
            #expect(try await job.survey().survey == .nothing)
        }
        #expect(!memory.directories.isClear("."))
    }

    @Test("A long file gets a part in a directory that is known")
    func onDisk() async throws {
        try await Self.run { disk, job, paths in
            _ = try await job.survey()
            let preparation = WatchedJob.preparation(length: PartMemory.lengthMax + 1)
            #expect(try !job.prepareInMemory(preparation, id: 8))
            #expect(try await job.prepare(preparation, id: 8) == nil)
            #expect(try disk.status(of: paths.part) != nil)
        }
    }

    @Test("A directory that was removed meanwhile is created again")
    func removed() async throws {
        try await Self.run { _, job, paths in
            try FileManager.default.removeItem(atPath: paths.directory)
            #expect(try await job.survey().survey == .nothing)
            #expect(try job.prepareInMemory(WatchedJob.preparation(), id: 7))
            try WatchedJob.fill(job, 0..<100)
            try await job.place(length: 100, evidence: .validator)
            #expect(try WatchedJob.contents(paths.destination) == WatchedPart.bytes(0..<100))
        }
    }
}
