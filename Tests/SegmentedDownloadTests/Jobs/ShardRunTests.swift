import Foundation
import HTTPTypes
import SegmentedDownloadCore
import Simulator
import Synchronization
import TestSupport
import Testing

@testable import SegmentedDownload

/// Runs of a job's tasks on a real file system.
@Suite("Runs of tasks")
struct ShardRunTests {
    /// A clock that performs an action instead of sleeping.
    private final class ActingClock: EngineClock {
        let sleeps = Mutex<[Duration]>([])
        private let action: @Sendable () async throws -> Void

        init(_ action: @escaping @Sendable () async throws -> Void = {}) { self.action = action }

        var now: Duration { .zero }
        var secondsSinceEpoch: Int64 { 1_000_000 }

        func sleep(until time: Duration) async throws {
            self.sleeps.withLock { $0.append(time) }
            try await self.action()
        }
    }

    private static func shard(_ text: String) throws -> Shard { try #require(Shard(text)) }

    private static func run(
        _ shard: String, in directory: String, host: String = "a", clock: ActingClock = ActingClock()
    ) async throws -> ShardRun {
        try await ShardRun(
            of: try Self.shard(shard), in: JobDirectory(directory + "/job"), JobSettings(directory: "/out"),
            machine: (host, 1, .random(in: 0 ... .max)), clock: clock, waiting: { _ in })
    }

    private static func entry(_ number: UInt32) -> EntryFingerprint {
        EntryFingerprint(high: UInt64(number) << 40, share: number)
    }

    /// A stream, whose record is of the entry alone.
    private static let stream = EntryFile(path: nil)

    private static func finish(_ entry: EntryFingerprint, _ run: ShardRun) throws {
        try run.finish(entry, Self.stream, .simulated(at: "-", length: 0))
    }

    private static func isFinished(_ entry: EntryFingerprint, _ run: ShardRun) -> Bool {
        run.isFinished(entry, Self.stream)
    }

    @Test("A run that died on the same machine is continued at once, and one that is alive is refused")
    func sameMachine() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ActingClock()
            do {
                let first = try await Self.run("1/2", in: directory, clock: clock)
                try Self.finish(Self.entry(0), first)
                await #expect { _ = try await Self.run("1/2", in: directory, clock: clock) } throws: {
                    ($0 as? DownloadError)?.code == .exists
                }
                await #expect { _ = try await Self.run("1/3", in: directory, clock: clock) } throws: {
                    ($0 as? DownloadError)?.code == .exists
                }
                _ = try await Self.run("2/2", in: directory, clock: clock)
            }
            let second = try await Self.run("1/3", in: directory, clock: clock)
            #expect(Self.isFinished(Self.entry(0), second))
            #expect(clock.sleeps.withLock { $0.isEmpty })
        }
    }

    @Test("Tasks that died on another machine are waited for once, however many they are")
    func otherMachine() async throws {
        try await withTemporaryDirectory { directory in
            for number in 1...4 { _ = try await Self.run("\(number)/4", in: directory, host: "b") }
            let clock = ActingClock()
            _ = try await Self.run("1/2", in: directory, clock: clock)
            #expect(clock.sleeps.withLock { $0 } == [.seconds(30)])
        }
    }

    @Test("A task that reports while its successor waits is alive")
    func reporting() async throws {
        try await withTemporaryDirectory { directory in
            _ = try await Self.run("1/4", in: directory, host: "b")
            let path = directory + "/job/shard-1-of-4.json"
            let clock = ActingClock {
                // Another machine replaces the file.
                let text = try Data(contentsOf: URL(fileURLWithPath: path))
                try text.write(to: URL(fileURLWithPath: path + ".new"))
                var times = [timespec(tv_sec: 5, tv_nsec: 0), timespec(tv_sec: 5, tv_nsec: 0)]
                utimensat(AT_FDCWD, path + ".new", &times, 0)
                rename(path + ".new", path)
            }
            await #expect { _ = try await Self.run("1/4", in: directory, clock: clock) } throws: {
                ($0 as? DownloadError)?.code == .exists
            }
        }
    }

    @Test("A run that was taken for dead does not replace what its successor reports")
    func superseded() async throws {
        try await withTemporaryDirectory { directory in
            let job = JobDirectory(directory + "/job")
            let old = try await Self.run("1/2", in: directory, host: "b")
            try old.fail("http://h/old\n")
            let (oldRun, shard) = (old.status.run, try Self.shard("1/2"))
            // The machine was silent for a time, so another one begins, and a third one later.
            let next = try await Self.replacement(of: "1/2", in: directory)
            try next.fail("http://h/new\n")
            try await old.report(now: 1)
            try await old.end(.failed, isComplete: true, now: 2)
            #expect(job.status(of: shard)?.status.run == next.status.run && oldRun != next.status.run)
            #expect(try job.names().count { $0.kind == .failed } == 2, "the failures of the successor stay")
            // Its last report may have been under way when the successor wrote the first one.
            try Self.write(old.status, to: directory)
            try await next.report(now: 3)
            #expect(job.status(of: shard)?.status.run == next.status.run)
            try FileManager.default.removeItem(atPath: directory + "/job/shard-1-of-2.json")
            try await next.report(now: 4)
            #expect(job.status(of: shard) == nil, "the records are of another job")
        }
    }

    /// A run on another machine, whose file system has no locks that both see.
    private static func replacement(of shard: String, in directory: String) async throws -> ShardRun {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory + "/job")
        for name in names where name.hasSuffix(".finished") {
            // The lock is of the old file.
            let path = directory + "/job/" + name
            try FileManager.default.removeItem(atPath: path)
            try Data(FinishedEntryCodec.header).write(to: URL(fileURLWithPath: path))
            chmod(path, 0o600)
        }
        return try await Self.run(shard, in: directory, host: "c")
    }

    private static func write(_ status: ShardStatus, to directory: String) throws {
        let path = directory + "/job/shard-\(status.shard)-of-\(status.shards).json"
        try JSONEncoder().encode(status).write(to: URL(fileURLWithPath: path))
        chmod(path, 0o600)
    }

    @Test(
        "The records of many runs are joined, without those of a run that still writes, and damaged ones are left out")
    func joining() async throws {
        try await withTemporaryDirectory { directory in
            for number: UInt32 in 0..<6 {
                let run = try await Self.run("1/1", in: directory)
                for entry in 0..<number { #expect(Self.isFinished(Self.entry(entry), run)) }
                try Self.finish(Self.entry(number), run)
                try await run.end(.stopped, isComplete: false, now: 0)
            }
            let records = { () throws in
                try FileManager.default.contentsOfDirectory(atPath: directory + "/job").filter {
                    $0.hasSuffix(".finished")
                }
            }
            #expect(try records().count < 6)
            for name in try records() {
                let path = URL(fileURLWithPath: directory + "/job/" + name)
                var bytes = try Data(contentsOf: path)
                // A torn record, and one whose first byte is damaged.
                bytes[16] ^= 1
                try (bytes + [1, 2, 3]).write(to: path)
            }
            let run = try await Self.run("1/1", in: directory)
            let found = (0..<UInt32(6)).count { Self.isFinished(Self.entry($0), run) }
            #expect(found < 6 && run.finished.count == found)
        }
    }

    /// Whether a run recognizes a file with these bytes as an entry's.
    private static func recognizes(_ bytes: [UInt8], as entry: EntryFingerprint, _ run: ShardRun, in directory: String)
        throws -> Bool
    {
        let path = directory + "/file"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let file = try POSIXStorage().open(path, .read)
        defer { file.close() }
        return try run.placingRecord(of: entry).describes(file, file.status(), unless: Latch())
    }

    @Test("A file that a run was about to put into place is recognized by its content, until the entry is finished")
    func placing() async throws {
        try await withTemporaryDirectory { directory in
            let content = ContentSummary(length: 3, crc: CRC32(of: Array("abc".utf8)))
            do {
                let first = try await Self.run("1/2", in: directory)
                for number: UInt32 in [0, 2] {
                    try await first.placingRecord(of: Self.entry(number)).append(content, isDurable: number == 0)
                }
                try Self.finish(Self.entry(2), first)
                #expect(try !Self.recognizes(Array("abc".utf8), as: Self.entry(0), first, in: directory))
            }
            // A record that was torn by a crash.
            let names = try JobDirectory(directory + "/job").names().filter { $0.kind == .placing }
            let path = URL(fileURLWithPath: directory + "/job/" + (try #require(names.first).text))
            try (Data(contentsOf: path) + [1, 2, 3]).write(to: path)
            // Another number of tasks finds the same record.
            do {
                let second = try await Self.run("1/1", in: directory)
                #expect(try Self.recognizes(Array("abc".utf8), as: Self.entry(0), second, in: directory))
                #expect(try !Self.recognizes(Array("abd".utf8), as: Self.entry(0), second, in: directory))
                #expect(try !Self.recognizes(Array("ab".utf8), as: Self.entry(0), second, in: directory))
                #expect(try !Self.recognizes(Array("abc".utf8), as: Self.entry(1), second, in: directory))
                #expect(try !Self.recognizes(Array("abc".utf8), as: Self.entry(2), second, in: directory))
            }
            for (state, count) in [(ShardStatus.State.failed, 1), (.finished, 0)] {
                let last = try await Self.run("1/2", in: directory)
                try await last.end(state, isComplete: true, now: 0)
                #expect(try JobDirectory(directory + "/job").names().count { $0.kind == .placing } == count)
            }
        }
    }

    // MARK: Files of finished entries

    /// A directory with a file, and what a request for it states.
    private static func withFile(_ body: (_ directory: String, _ path: String) async throws -> Void) async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/file"
            try Data("abc".utf8).write(to: URL(fileURLWithPath: path))
            try await body(directory, path)
        }
    }

    @Test("An entry is finished while its file is as it was: neither gone, nor changed, replaced or no file")
    func changes() async throws {
        try await Self.withFile { directory, path in
            let (entry, file) = (Self.entry(1), EntryFile(path: path))
            try await Self.run("1/1", in: directory).finish(entry, file, .simulated(at: path, length: 3))
            let run = try await Self.run("1/1", in: directory)
            let kept = directory + "/kept"
            #expect(run.isFinished(entry, file))
            #expect(!run.isFinished(Self.entry(2), file))
            try FileManager.default.moveItem(atPath: path, toPath: kept)
            #expect(!run.isFinished(entry, file), "gone")
            symlink(kept, path)
            #expect(!run.isFinished(entry, file), "a link to the file")
            unlink(path)
            // Another file with the same length and modification time.
            var facts = stat()
            stat(kept, &facts)
            try Data("abd".utf8).write(to: URL(fileURLWithPath: path))
            let time = facts.st_mtim
            var times = [time, time]
            utimensat(AT_FDCWD, path, &times, 0)
            #expect(!run.isFinished(entry, file), "another inode")
            rename(kept, path)
            // It is recorded anew before each change that follows, by a job of its own.
            func recorded() async throws -> ShardRun {
                let place = directory + "/\(UUID())"
                try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
                try await Self.run("1/1", in: place).finish(entry, file, .simulated(at: path, length: 3))
                let run = try await Self.run("1/1", in: place)
                #expect(run.isFinished(entry, file))
                return run
            }
            let beforeEdit = try await recorded()
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try handle.write(contentsOf: Data("abd".utf8))
            try handle.close()
            utimensat(AT_FDCWD, path, &times, 0)
            #expect(!beforeEdit.isFinished(entry, file), "other content, with the modification time restored")
            let beforeTime = try await recorded()
            times[1].tv_sec += 1
            utimensat(AT_FDCWD, path, &times, 0)
            #expect(!beforeTime.isFinished(entry, file), "another modification time")
            let beforeLength = try await recorded()
            truncate(path, 4)
            utimensat(AT_FDCWD, path, &times, 0)
            #expect(!beforeLength.isFinished(entry, file), "another length")
        }
    }

    @Test(
        "What a request states besides the entry's text decides, too: its length, its pieces, its fields and its user")
    func statements() async throws {
        try await Self.withFile { directory, path in
            let entry = Self.entry(1)
            var request = DownloadRequest(try SourceURL("http://h/file"), to: .file(FilePath(path)))
            try await Self.run("1/1", in: directory).finish(
                entry, EntryFile(of: request), .simulated(at: path, length: 3))
            let run = try await Self.run("1/1", in: directory)
            #expect(run.isFinished(entry, EntryFile(of: request)))
            request.lengthExpected = 3
            #expect(run.isFinished(entry, EntryFile(of: request)))
            request.lengthExpected = 4
            #expect(!run.isFinished(entry, EntryFile(of: request)))
            request.lengthExpected = nil
            request.pieceDigests = Metalink.PieceDigests(length: 3, algorithm: .md5, hexes: [])
            #expect(!run.isFinished(entry, EntryFile(of: request)))
            request.pieceDigests = nil
            request.fields[.acceptLanguage] = "en"
            #expect(!run.isFinished(entry, EntryFile(of: request)))
            request.fields = [:]
            request.credentials = .basic(user: "a", password: "b")
            #expect(!run.isFinished(entry, EntryFile(of: request)))
        }
    }

    @Test(
        "A selection depends on the values of fields and on the user, and not on their case, order of names or passwords"
    )
    func selection() throws {
        var request = DownloadRequest(try SourceURL("http://h/file"))
        let none = request.selection(salt: [])
        request.fields = [.acceptLanguage: "en", .referer: "http://a/"]
        let fields = request.selection(salt: [])
        #expect(fields != none && fields != request.selection(salt: [1]))
        let name = try #require(HTTPField.Name("ACCEPT-LANGUAGE"))
        request.fields = [.referer: "http://a/", name: "en"]
        #expect(request.selection(salt: []) == fields)
        request.fields[.acceptLanguage] = "EN"
        #expect(request.selection(salt: []) != fields)
        request.fields = [:]
        request.credentials = .basic(user: "a", password: "b")
        let user = request.selection(salt: [])
        request.credentials = .basic(user: "a", password: "c")
        #expect(request.selection(salt: []) == user && user != none)
        request.source = try SourceURL("http://b:c@h/file")
        #expect(request.selection(salt: []) != user, "a URL's own user takes precedence")
        request.credentials = .bearer(token: "t")
        request.source = try SourceURL("http://h/file")
        #expect(![none, user].contains(request.selection(salt: [])))
    }

    @Test("A file that changed before its entry was recorded, and one that is kept unproven, are asked for again")
    func unrecorded() async throws {
        try await Self.withFile { directory, path in
            let file = EntryFile(path: path)
            do {
                let run = try await Self.run("1/1", in: directory)
                try await run.placingRecord(of: Self.entry(3)).append(
                    ContentSummary(length: 3, crc: CRC32()), isDurable: false)
                try run.finish(Self.entry(1), file, .simulated(at: path, length: 4))
                try run.finish(Self.entry(2), file, .simulated(at: directory + "/none", length: 3))
                run.noteUnproven()
                try await run.end(.finished, isComplete: true, now: 0)
            }
            #expect(try JobDirectory(directory + "/job").names().count { $0.kind == .placing } == 1)
            let run = try await Self.run("1/1", in: directory)
            #expect(run.finished.count == 0)
            #expect(!run.isFinished(Self.entry(1), file) && !run.isFinished(Self.entry(2), file))
        }
    }

    @Test("A file is found under the name that the response or a number gave it, in later runs and with other tasks")
    func otherNames() async throws {
        try await Self.withFile { directory, path in
            let likely = EntryFile(path: directory + "/download?id=1")
            let name = "a b%\u{301}\n.1"
            let numbered = directory + "/" + name
            try await Self.run("1/1", in: directory).finish(Self.entry(0), likely, .simulated(at: path, length: 3))
            do {
                let run = try await Self.run("1/1", in: directory)
                #expect(run.isFinished(Self.entry(0), likely))
                rename(path, numbered)
                #expect(!run.isFinished(Self.entry(0), likely))
                try run.finish(Self.entry(0), likely, .simulated(at: numbered, length: 3))
            }
            // A torn line, and one that is damaged.
            let names = try JobDirectory(directory + "/job").names().filter { $0.kind == .names }
            #expect(names.count == 2)
            for name in names {
                let file = URL(fileURLWithPath: directory + "/job/" + name.text)
                let text = try String(contentsOf: file, encoding: .utf8)
                let damaged = text.replacingOccurrences(
                    of: "000000000000000000000000", with: "000000010000000000000000")
                #expect(damaged != text)
                try Data((text + damaged + text.prefix(30)).utf8).write(to: file)
            }
            let run = try await Self.run("1/2", in: directory)
            #expect(run.isFinished(Self.entry(0), likely))
            rename(numbered, path)
            #expect(!run.isFinished(Self.entry(0), likely), "renamed since it was recorded")
            let other = try await Self.run("2/2", in: directory)
            #expect(!other.isFinished(Self.entry(0), likely), "it is not the task's")
        }
    }

    @Test("A name is read as it was written, and a line with a flaw is none")
    func nameLines() {
        let entry = EntryFingerprint(high: 0x0123_4567_89AB_CDEF, share: 7)
        for name in ["a", "a b", "%41", "\u{301}/\n", " "] {
            let encoded = EntryNameCodec.encode(name, of: entry)
            #expect(encoded.last == UInt8(ascii: "\n"))
            let line = Array(encoded.dropLast())
            let found = EntryNameCodec.decode(line[...])
            #expect(found?.entry == entry && found?.name == name)
            for index in line.indices {
                var damaged = line
                damaged[index] ^= 1
                for flawed in [damaged[...], line[..<index]] {
                    let entry = EntryNameCodec.decode(flawed)?.entry
                    #expect(entry == nil)
                }
            }
        }
    }

    @Test("The records of 0.1.0 were of entries alone: their entries are asked for again")
    func earlierRecords() async throws {
        try await Self.withFile { directory, path in
            _ = try await Self.run("1/1", in: directory)
            let records = try #require(try JobDirectory(directory + "/job").names().first { $0.kind == .finished })
            let bytes = FinishedEntryCodec.header + FinishedEntryCodec.encode(Self.entry(1))
            try Data(bytes).write(to: URL(fileURLWithPath: directory + "/job/" + records.text))
            let run = try await Self.run("1/1", in: directory)
            #expect(run.finished.count == 1 && !run.isFinished(Self.entry(1), EntryFile(path: path)))
        }
    }

    @Test("A status that a server has renamed before it was asked again is written", arguments: [false, true])
    func renamedBefore(isReplacing: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let disk = WatchedStorage()
            let (draft, path) = (directory + "/draft", directory + "/status")
            if isReplacing { try Data("old".utf8).write(to: URL(fileURLWithPath: path)) }
            disk.before(isReplacing ? "rename over draft to status" : "rename draft to status") {
                try #require((isReplacing ? rename(draft, path) : link(draft, path)) == 0)
            }
            try await JobDirectory(directory, storage: disk).write(
                Array("new".utf8), to: path, draft: draft, replacing: isReplacing)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "new")
            #expect(!FileManager.default.fileExists(atPath: draft))
        }
    }

    @Test("A directory of another job, and one that others may write, are refused")
    func directories() async throws {
        try await withTemporaryDirectory { directory in
            _ = try await Self.run("1/1", in: directory)
            let job = JobDirectory(directory + "/job")
            await #expect { try await job.open(JobSettings(directory: "/other"), draft: 1) } throws: {
                ($0 as? DownloadError)?.code == .usage
            }
            chmod(directory + "/job/job.json", 0o666)
            await #expect { try await job.open(JobSettings(directory: "/out"), draft: 1) } throws: {
                ($0 as? DownloadError)?.code != nil
            }
        }
    }

    @Test("A run that saves other bytes, or under other names, is refused: it would skip what is finished")
    func settings() async throws {
        let part = DownloadOptions.Part(first: 0, last: 99)
        let whole = JobSettings(directory: "/out")
        let others = [
            JobSettings(directory: "/out", part: part),
            JobSettings(directory: "/out", part: DownloadOptions.Part(first: 0)),
            JobSettings(directory: "/out", nameTemplate: "{id}"),
            JobSettings(directory: "/out", part: part, nameTemplate: "{id}"),
        ]
        for settings in [whole] + others {
            #expect(JobSettings(settings.encoded) == settings)
            try await withTemporaryDirectory { directory in
                let job = JobDirectory(directory + "/job")
                try await job.open(settings, draft: 1)
                for other in [whole] + others {
                    var code: DownloadError.Code?
                    do throws(DownloadError) {
                        try await job.open(other, draft: 2)
                    } catch {
                        code = error.code
                    }
                    #expect(code == (other == settings ? nil : .usage))
                }
            }
        }
        // A job of an earlier version.
        #expect(String(decoding: whole.encoded, as: UTF8.self) == "{\"dir\":\"/out\",\"v\":1}\n")
        #expect(
            whole.difference(from: others[0])?.text == "saves bytes 0-99 of each file, not whole files")
    }

    @Test("Names of a job's files are read as they are written, and others are ignored")
    func names() throws {
        let shard = try Self.shard("3/8")
        for name in [
            JobDirectory.Name(shard, run: "ab", .finished), .init(shard, run: "ab-joined", .finished),
            .init(shard, run: "0", .failed), .init(shard, run: "ab", .placing), .init(shard, run: "ab", .names),
            .init(shard, .json),
        ] {
            #expect(JobDirectory.Name(name.text) == name)
        }
        for text in [
            "job.json", "shard-0-of-8.json", "shard-3-of-8.json.ab-1", "shard-3-of-8.a.b.finished", "shard-3-of-8", "x",
        ] {
            #expect(JobDirectory.Name(text) == nil, "\(text)")
        }
    }
}
