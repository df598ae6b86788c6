import Foundation
import SegmentedDownloadCore
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

    @Test("A run that died on the same machine is continued at once, and one that is alive is refused")
    func sameMachine() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ActingClock()
            do {
                let first = try await Self.run("1/2", in: directory, clock: clock)
                try first.finish(Self.entry(0))
                await #expect { _ = try await Self.run("1/2", in: directory, clock: clock) } throws: {
                    ($0 as? DownloadError)?.code == .exists
                }
                await #expect { _ = try await Self.run("1/3", in: directory, clock: clock) } throws: {
                    ($0 as? DownloadError)?.code == .exists
                }
                _ = try await Self.run("2/2", in: directory, clock: clock)
            }
            let second = try await Self.run("1/3", in: directory, clock: clock)
            #expect(second.finished.contains(Self.entry(0)))
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
                for entry in 0..<number { #expect(run.finished.contains(Self.entry(entry))) }
                try run.finish(Self.entry(number))
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
            let found = (0..<UInt32(6)).count { run.finished.contains(Self.entry($0)) }
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
        return try run.placingRecord(of: entry).describes(file, file.status())
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
                try first.finish(Self.entry(2))
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
            .init(shard, run: "0", .failed), .init(shard, run: "ab", .placing), .init(shard, .json),
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
