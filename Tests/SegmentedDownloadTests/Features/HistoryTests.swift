import Foundation
import Origin
import TestSupport
import Testing

@testable import SegmentedDownload

/// The history of downloads that ended.
@Suite struct HistoryTests {
    private static func entry(_ number: Int) -> HistoryEntry {
        HistoryEntry(
            time: 1_700_000_000, id: "\(number)", url: "http://host/\(number)", path: "ü\n", bytes: .max,
            outcome: .failed,
            code: "network", message: "no \"answer\"\n", userInfo: ["a": "b"])
    }

    @Test("The history has a line for every download that ended, without secrets, in this run and the next")
    func lines() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.history = HistoryPolicy(path: FilePath(harness.directory + "/history"))
            try await harness.withGroup(configuration) { group in
                let secret = harness.origin.url("/1M/a?token=&seed=1").replacing("http://", with: "http://me:word@")
                var request = DownloadRequest(try SourceURL(secret), to: .file(harness.directory + "/a"))
                request.id = "film"
                request.userInfo = ["title": "A"]
                await code { try await group.add(request).result() }
                let good = try harness.request("/1M/b?seed=3") { $0.destination = .file(harness.directory + "/b") }
                _ = try await group.add(good).result()
                let stuck = try group.add(harness.stuckRequest("c"))
                await stuck.reached(1)
                await stuck.pause()
                #expect(
                    try await group.historyEntries().map(\.outcome) == [.failed, .completed], "a pause is not an end")
                await stuck.cancel(keepingPartial: false)
                #expect(try await group.historyEntry(id: "film")?.outcome == .failed)
                #expect(try await group.historyEntry(id: "other") == nil)
            }
            let entries = try await harness.withGroup(configuration) { try await $0.historyEntries() }
            #expect(entries.map(\.outcome) == [.failed, .completed, .cancelled])
            #expect(entries[0].id == "film" && entries[0].userInfo == ["title": "A"] && entries[0].code != nil)
            #expect(entries[1].bytes == 1.mebibytes && entries[1].path.string == harness.directory + "/b")
            #expect(entries.allSatisfy { $0.time > 1_600_000_000 })
            let text = String(decoding: try harness.bytes(harness.directory + "/history"), as: UTF8.self)
            #expect(!text.contains("word") && !text.contains("token") && !text.contains("seed"))
            let mode = try FileManager.default.attributesOfItem(atPath: harness.directory + "/history")[
                .posixPermissions]
            #expect(mode as? Int == 0o600)
        }
    }

    @Test("A history that grows too long is rotated, and the previous one is kept")
    func bounded() async throws {
        try await withTemporaryDirectory { directory in
            let file = HistoryFile(
                path: directory + "/history", lengthMaximum: 2000, storage: POSIXStorage())
            for number in 0..<100 { try file.append(Self.entry(number)) }
            let numbers = try file.entries().compactMap { Int($0.id) }
            #expect(numbers.last == 99 && numbers.count > 10 && numbers == Array((100 - numbers.count)..<100))
            for path in [file.path, file.olderPath] {
                let length = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
                #expect((1...2000).contains(length ?? 0))
            }
        }
    }

    @Test("A damaged or torn line of a history affects no other line")
    func damaged() async throws {
        try await withTemporaryDirectory { directory in
            let file = HistoryFile(
                path: directory + "/history", lengthMaximum: .max, storage: POSIXStorage())
            try file.append(Self.entry(1))
            #expect(try file.entries() == [Self.entry(1)])
            let handle = try #require(FileHandle(forWritingAtPath: file.path))
            try handle.seekToEnd()
            try handle.write(contentsOf: Data("\n{}\n[1]\n\u{0}\u{0}\n{\"time\":".utf8))
            try handle.close()
            try file.append(Self.entry(2))
            #expect(try file.entries() == [Self.entry(1), Self.entry(2)])
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file.path)))
            for index in bytes.indices {
                var changed = bytes
                changed[index] ^= 0x10
                // A flipped bit may join two lines, but never affect a third.
                #expect((0...2).contains(HistoryFile.entries(in: changed).count))
                #expect(HistoryFile.entries(in: Array(bytes[..<index])).count <= 2)
            }
        }
    }

    @Test("The history is on the disk that its client uses", arguments: StorageDoor.Kind.allCases)
    func door(kind: StorageDoor.Kind) async throws {
        try await StorageDoor.run(kind) { door in
            let file = HistoryFile(path: door.path("history"), lengthMaximum: 300, storage: door.storage)
            var isWritten = try file.append(Self.entry(1))
            #expect(isWritten)
            #expect(try door.status(of: "history")?.ownership.permissions == 0o600)
            // Another process holds the lock.
            let holder = try door.storage.open(file.path, .update)
            #expect(try holder.tryLock() == .taken)
            isWritten = try file.append(Self.entry(2))
            #expect(!isWritten)
            holder.close()
            // It would grow too long, and is renamed.
            isWritten = try file.append(Self.entry(3))
            #expect(isWritten)
            #expect(try door.contents(of: "history.1").count < 300 && door.contents(of: "history").count < 300)
            #expect(try file.entries().map(\.id) == ["1", "3"])
        }
    }

    @Test("Lines of many writers stay complete, also during rotation")
    func manyWriters() async throws {
        try await withTemporaryDirectory { directory in
            let file = HistoryFile(
                path: directory + "/history", lengthMaximum: 40_000, storage: POSIXStorage())
            await withTaskGroup(of: Void.self) { tasks in
                for writer in 0..<8 {
                    tasks.addTask {
                        for number in 0..<40 {
                            while (try? file.append(Self.entry(writer * 100 + number))) == false { await Task.yield() }
                        }
                    }
                }
            }
            let ids = try file.entries().compactMap { Int($0.id) }
            #expect(Set(ids).count == ids.count)
            let lines = try [file.path, file.olderPath].flatMap {
                try String(contentsOfFile: $0, encoding: .utf8).split(separator: "\n")
            }
            #expect(lines.count == ids.count && ids.count > 100)
            for writer in 0..<8 {
                let own = ids.filter { $0 / 100 == writer }
                #expect(own == own.sorted(), "each writer's lines are in order")
            }
        }
    }

    @Test("A lock that another program holds blocks no download and no end of a group")
    func locked() async throws {
        try await Harness.run { harness in
            let path = harness.directory + "/history"
            let holder = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            defer { close(holder) }
            #expect(flock(holder, LOCK_EX) == 0)
            var configuration = DownloadConfiguration()
            configuration.history = HistoryPolicy(path: FilePath(path))
            try await harness.withGroup(configuration) { group in
                _ = try await group.add(harness.request("/1M/file.bin")).result()
                let second = try harness.request("/1M/b") { $0.destination = .file(harness.directory + "/b") }
                _ = try await group.add(second).result()
            }
            #expect(try harness.bytes(path).isEmpty)
            flock(holder, LOCK_UN)
            let result = await harness.fetch("/1M/c.bin", configuration: configuration)
            #expect(result.code == nil)
            #expect(try !harness.bytes(path).isEmpty, "a released lock is used again")
        }
    }

    @Test("A symbolic link in place of the history is not followed, and fails no download")
    func link() async throws {
        try await Harness.run { harness in
            let path = harness.directory + "/history"
            try harness.write([1], to: harness.directory + "/victim")
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: harness.directory + "/victim")
            var configuration = DownloadConfiguration()
            configuration.history = HistoryPolicy(path: FilePath(path))
            let result = await harness.fetch("/1M/file.bin", configuration: configuration)
            #expect(result.code == nil)
            #expect(try harness.bytes(harness.directory + "/victim") == [1])
        }
    }

    @Test("Finished downloads stay listed or leave, as the policy says")
    func listing() async throws {
        for stays in [true, false] {
            try await Harness.run { harness in
                var configuration = DownloadConfiguration()
                configuration.history.listsFinished = stays
                try await harness.withGroup(configuration) { group in
                    let done = try group.add(harness.request("/1M/file.bin"))
                    let failed = try group.add(
                        harness.request("/1M/b?fail=404:all") { $0.destination = .file(harness.directory + "/b") })
                    _ = try await done.result()
                    try await failed.rest()
                    await group.waitForAll()
                    // A failed download can be resumed, so it stays.
                    #expect(group.downloads.map(\.id) == (stays ? [done.id, failed.id] : [failed.id]))
                    #expect(done.state == .completed, "a reference to it still has its state")
                }
            }
        }
    }
}
