import Foundation
import Origin
import TestSupport
import Testing

@testable import SegmentedDownload

/// The memory of servers between runs.
@Suite struct ServerMemoryTests {
    private static func memory(_ directory: String) -> ServerMemory {
        var memory = ServerMemory(path: FilePath(directory + "/cache/segdl/servers.json"))
        memory.includesLoopback = true
        return memory
    }

    /// The records of another process.
    private static func records(
        _ memory: ServerMemory, in storage: any Storage = POSIXStorage()
    ) -> ServerRecords {
        let records = ServerRecords(memory, in: storage, clock: SystemClock(), seed: .random(in: .min ... .max))
        records.load()
        return records
    }

    private static func origin(_ number: Int) throws -> SourceURL.Origin {
        try SourceURL("http://host\(number).example/").origin
    }

    @Test(
        "A server's number of connections is recorded for the next process, in a directory for the owner only"
    )
    func remembers() async throws {
        try await withTemporaryDirectory { directory in
            let (memory, host) = (Self.memory(directory), try Self.origin(1))
            #expect(Self.records(memory).connections(to: host) == nil)
            let (one, other) = (Self.records(memory), Self.records(memory))
            one.record(6, for: host)
            #expect(one.connections(to: host) == 6 && !FileManager.default.fileExists(atPath: memory.path.string))
            other.record(3, for: try Self.origin(2))
            await one.save()
            await other.save()
            let next = Self.records(memory)
            #expect(next.connections(to: host) == 6, "another process's record removed nothing")
            #expect(next.connections(to: try Self.origin(2)) == 3)
            #expect(next.connections(to: try SourceURL("http://host1.example:81/").origin) == nil)
            let folder = memory.path.removingLastComponent().string
            let mode = try FileManager.default.attributesOfItem(atPath: folder)[.posixPermissions]
            #expect(mode as? Int == 0o700)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["servers.json"])
        }
    }

    @Test("Each of many callers that load the records waits until they are read")
    func loadedTogether() async throws {
        try await withTemporaryDirectory { directory in
            let (memory, host) = (Self.memory(directory), try Self.origin(1))
            let earlier = Self.records(memory)
            earlier.record(6, for: host)
            await earlier.save()
            let records = ServerRecords(memory, in: POSIXStorage(), clock: SystemClock(), seed: 1)
            await withTaskGroup { callers in
                for _ in 0..<100 {
                    callers.addTask {
                        await records.load(on: .inherited)
                        #expect(records.connections(to: host) == 6)
                    }
                }
            }
        }
    }

    @Test("Old records expire, and the oldest are dropped when there are too many")
    func forgets() async throws {
        try await withTemporaryDirectory { directory in
            let (memory, host) = (Self.memory(directory), try Self.origin(1))
            let first = Self.records(memory)
            first.record(6, for: host)
            await first.save()
            var brief = memory
            brief.lifetime = .seconds(-1)
            #expect(Self.records(brief).connections(to: host) == nil)
            let now = SystemClock().secondsSinceEpoch
            let long = (0..<ServerRecords.recordsMax).map {
                "\"http://host\($0).example:80\":{\"connections\":4,\"time\":\(now - Int64($0))}"
            }
            try Data("{\(long.joined(separator: ","))}".utf8).write(to: URL(filePath: memory.path.string))
            let late = Self.records(memory)
            late.record(9, for: try Self.origin(1000))
            await late.save()
            let book = Self.records(memory)
            #expect(book.connections(to: try Self.origin(0)) == 4)
            #expect(book.connections(to: try Self.origin(ServerRecords.recordsMax - 1)) == nil)
            #expect(book.connections(to: try Self.origin(1000)) == 9)
        }
    }

    @Test(
        "A damaged file is ignored and replaced",
        arguments: ["", "{", "[]", "{\"http://host1.example:80\":6}", String(repeating: "x", count: 2 << 20)])
    func damaged(text: String) async throws {
        try await withTemporaryDirectory { directory in
            let (memory, host) = (Self.memory(directory), try Self.origin(1))
            let before = Self.records(memory)
            before.record(2, for: host)
            await before.save()
            try Data(text.utf8).write(to: URL(filePath: memory.path.string))
            let book = Self.records(memory)
            #expect(book.connections(to: host) == nil)
            book.record(5, for: host)
            await book.save()
            #expect(Self.records(memory).connections(to: host) == 5)
        }
    }

    @Test(
        "Records are on the disk that their client uses, and are read only when they are loaded",
        arguments: StorageDoor.Kind.allCases)
    func door(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let memory = ServerMemory(path: FilePath(door.path("cache/servers.json")))
            let host = try Self.origin(1)
            for number in 1...2 {
                let records = Self.records(memory, in: door.storage)
                records.record(number, for: host)
                await records.save()
            }
            #expect(try door.status(of: "cache")?.ownership.permissions == 0o700)
            #expect(try door.storage.names(in: door.path("cache")).sorted() == [".", "..", "servers.json"])
            let records = ServerRecords(memory, in: door.storage, clock: SystemClock(), seed: 1)
            #expect(records.connections(to: host) == nil, "the file is read where a download is added")
            records.load()
            #expect(records.connections(to: host) == 2)
        }
    }

    @Test("Records that cannot be put in place leave the earlier ones, and no other file")
    func unplaced() async throws {
        try await withTemporaryDirectory { directory in
            let (disk, host) = (WatchedStorage(), try Self.origin(1))
            let memory = ServerMemory(path: FilePath(directory + "/servers.json"))
            let records = ServerRecords(memory, in: disk, clock: SystemClock(), seed: 7)
            records.record(3, for: host)
            await records.save()
            records.record(4, for: host)
            let call = "rename over servers.json.7-2 to servers.json"
            disk.fail(call, .noSpace)
            _ = disk.take()
            await records.save()
            #expect(disk.take().suffix(2) == [call, "remove servers.json.7-2"])
            #expect(Self.records(memory).connections(to: host) == 3)
            #expect(disk.openNames.isEmpty)
        }
    }

    @Test("Loopback servers are not recorded")
    func loopback() async throws {
        try await withTemporaryDirectory { directory in
            let memory = ServerMemory(path: FilePath(directory + "/servers.json"))
            for host in ["localhost", "127.0.0.1", "127.9.9.9:8080", "[::1]"] {
                let origin = try SourceURL("http://\(host)/").origin
                let book = Self.records(memory)
                book.record(5, for: origin)
                await book.save()
                #expect(book.connections(to: origin) == nil)
            }
            #expect(!FileManager.default.fileExists(atPath: memory.path.string))
        }
    }

    @Test("A directory that cannot be written fails no download")
    func unwritable() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.memory = ServerMemory(path: "/dev/null/servers.json")
            configuration.memory?.includesLoopback = true
            let result = try await harness.fetch("/1M/a?seed=1", configuration: configuration) {
                $0.segments = .automatic
            }.get()
            #expect(result.bytes == 1.mebibytes)
        }
    }

    @Test("A download starts with the recorded number of connections, and a refusal is recorded")
    func used() async throws {
        try await Harness.run { harness in
            let origin = try SourceURL(harness.origin.url("/")).origin
            var configuration = DownloadConfiguration()
            let memory = Self.memory(harness.directory)
            configuration.memory = memory
            let book = Self.records(memory)
            book.record(5, for: origin)
            await book.save()
            let known = try await harness.fetch("/16M/a?seed=1&rate=4M", configuration: configuration) {
                $0.segments = .automatic
            }.get()
            #expect(known.connectionsPeak >= 5)
            #expect(Self.records(memory).connections(to: origin) == 5, "no new number was observed")
            let refused = try await harness.fetch("/16M/b?seed=1&rate=4M&limit=2", configuration: configuration) {
                $0.segments = .automatic
                $0.destination = .file(harness.directory + "/b")
            }.get()
            #expect(refused.bytes == 16.mebibytes)
            #expect((1...2).contains(Self.records(memory).connections(to: origin) ?? 0))
        }
    }
}
