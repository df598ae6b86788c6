import Foundation
import GRDB
import Origin
import SystemPackage
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadService

/// The queue with real sockets and a real disk.
@Suite struct DownloadQueueTests {
    private struct Scene: Sendable {
        let origin: Origin
        let directory: String

        var database: FilePath { FilePath(self.directory + "/state/queue.sqlite") }

        /// Runs a queue while `body` does, like one process after another. Ends it by a shutdown, or by cancelling it as a
        /// killed process ends.
        func run<Answer: Sendable>(
            limit: Int = 5, killing: Bool = false, database: FilePath? = nil,
            _ body: @escaping @Sendable (DownloadQueue) async throws -> Answer
        ) async throws -> Answer {
            var configuration = DownloadConfiguration()
            configuration.limits.downloads = limit
            let queue = DownloadQueue(
                configuration, database: database ?? self.database, directory: FilePath(self.directory + "/files"))
            let running = Task { try await queue.run() }
            do {
                let answer = try await body(queue)
                if killing { running.cancel() } else { queue.shutdown() }
                _ = await running.result
                return answer
            } catch {
                queue.shutdown()
                _ = await running.result
                throw error
            }
        }

        func request(_ resource: String) throws -> DownloadRequest {
            DownloadRequest(try SourceURL(self.origin.url(resource)))
        }

        /// A file of 64 MiB whose bodies stall until ``release(_:)``. Connections that are opened in their place would
        /// complete a short file.
        func stuckRequest(_ name: String) throws -> DownloadRequest {
            DownloadRequest(try SourceURL(self.origin.plainURL("/64M/\(name)?stall-after=100K:all")))
        }

        /// Answers the requests for a file completely from now on.
        func release(_ name: String) { _ = self.origin.plainURL("/64M/\(name)") }

        func file(_ name: String) -> FilePath { FilePath(self.directory + "/files/" + name) }

        func holds(_ name: String, _ length: Int64) -> Bool {
            OriginContent(seed: 1).firstMismatch(inFileAt: self.file(name).string, length: length) == nil
        }

        var names: Set<String> {
            Set((try? FileManager.default.contentsOfDirectory(atPath: self.directory + "/files")) ?? [])
        }

        static func run(_ body: (Scene) async throws -> Void) async throws {
            try await withTemporaryDirectory { directory in
                try await withOrigin { origin in try await body(Scene(origin: origin, directory: directory)) }
            }
        }
    }

    @Test("Downloads complete, leave the queue and have a row in the history", arguments: [1, 5])
    func completes(limit: Int) async throws {
        try await Scene.run { scene in
            let requests = try (0..<12).map { try scene.request("/1M/\($0).bin") }
            try await scene.run(limit: limit) { queue in
                let ids = try await queue.add(requests)
                #expect(Set(ids).count == 12)
                try await queue.waitUntil { $0.isEmpty }
                let rows = try await queue.history(limit: 100)
                #expect(Set(rows.map(\.id)) == Set(ids.map(\.rawValue)) && rows.count == 12)
                #expect(rows.allSatisfy { $0.outcome == .completed && $0.bytes == 1 << 20 })
                if limit == 1 { #expect(rows.reversed().map(\.id) == ids.map(\.rawValue)) }
            }
            for number in 0..<12 { #expect(scene.holds("\(number).bin", 1 << 20)) }
        }
    }

    @Test("After a kill every entry is there again, once, and the files continue", arguments: [true, false])
    func restarts(killing: Bool) async throws {
        try await Scene.run { scene in
            let requests = try (0..<2).map { try scene.stuckRequest("\($0).bin") }
            let ids = try await scene.run(killing: killing) { queue in
                let ids = try await queue.add(requests) + queue.add([try scene.request("/1M/p.bin")], paused: true)
                try await queue.waitUntil { entries in
                    entries.prefix(2).allSatisfy { $0.progress?.bytesDone ?? 0 > 0 }
                }
                return ids
            }
            #expect(scene.names.contains("0.bin.segdl-part") && scene.names.contains("1.bin.segdl-part"))
            for number in 0..<2 { scene.release("\(number).bin") }
            try await scene.run { queue in
                #expect(try await queue.entries().map(\.id) == ids)
                try await queue.waitUntil { $0.count == 1 }
                let entry = try #require(try await queue.entry(ids[2]))
                #expect(entry.state == .paused && entry.progress == nil)
                try await queue.resume([ids[2]])
                try await queue.waitUntil { $0.isEmpty }
                #expect(try await queue.history(limit: 9).count == 3)
            }
            #expect(scene.names == ["0.bin", "1.bin", "p.bin"])
            for number in 0..<2 { #expect(scene.holds("\(number).bin", 64 << 20)) }
        }
    }

    @Test("A paused download stops, others go on, and it completes once it is resumed")
    func pauses() async throws {
        try await Scene.run { scene in
            try await scene.run(limit: 1) { queue in
                let slow = try await queue.add([try scene.stuckRequest("slow.bin")])
                let other = try await queue.add([try scene.request("/1M/other.bin")])
                try await queue.waitUntil { $0.first?.progress?.bytesDone ?? 0 > 0 }
                #expect(try await queue.entry(other[0])?.state == .waiting)
                try await queue.pause(slow)
                try await queue.waitUntil { $0.map(\.id) == slow }
                #expect(try await queue.entry(slow[0])?.state == .paused)
                scene.release("slow.bin")
                try await queue.resume(slow)
                try await queue.waitUntil { $0.isEmpty }
            }
            #expect(scene.names == ["slow.bin", "other.bin"] && scene.holds("slow.bin", 64 << 20))
        }
    }

    @Test("A running download whose URL is changed ends with the file of the new URL")
    func changesURL() async throws {
        try await Scene.run { scene in
            try await scene.run { queue in
                let events = try await queue.events()
                let id = try await queue.add([try scene.stuckRequest("a.bin")])[0]
                try await queue.waitUntil { $0.first?.progress?.bytesDone ?? 0 > 0 }
                var old: Download?
                for await case .download(let download, .started) in events {
                    old = download
                    break
                }
                let download = try #require(old)
                #expect(await queue.isOutdated(download) == false)
                scene.release("a.bin")
                let new = try SourceURL(scene.origin.url("/64M/b.bin?seed=2"))
                #expect(try await queue.update(id) { (request) throws(DownloadError) in request.priority = 1 })
                #expect(await queue.isOutdated(download) == false)
                #expect(try await queue.update(id) { (request) throws(DownloadError) in request.source = new })
                #expect(await queue.isOutdated(download))
                try await queue.waitUntil { $0.isEmpty }
                let rows = try await queue.history(limit: 9)
                #expect(rows.map(\.outcome) == [.completed] && rows.first?.url == new.description)
            }
            let path = scene.file("a.bin").string
            #expect(OriginContent(seed: 2).firstMismatch(inFileAt: path, length: 64 << 20) == nil)
        }
    }

    @Test("A running download whose digest is changed does not complete without it")
    func changesDigest() async throws {
        try await Scene.run { scene in
            try await scene.run { queue in
                let id = try await queue.add([try scene.stuckRequest("a.bin")])[0]
                try await queue.waitUntil { $0.first?.progress?.bytesDone ?? 0 > 0 }
                scene.release("a.bin")
                let wrong = try #require(ExpectedDigest(.sha256, hex: String(repeating: "0", count: 64)))
                #expect(try await queue.update(id) { (request) throws(DownloadError) in request.digests = [wrong] })
                try await queue.waitUntil { $0.first?.state == .failed }
                #expect(try await queue.entry(id)?.error?.code == .integrity)
                #expect(!scene.names.contains("a.bin"))
                #expect(try await queue.history(limit: 9).isEmpty)
            }
        }
    }

    @Test("A cancelled download leaves the queue and, if that is wanted, nothing on disk", arguments: [true, false])
    func cancels(keepingPartial: Bool) async throws {
        try await Scene.run { scene in
            try await scene.run(limit: 1) { queue in
                let ids = try await queue.add([
                    try scene.stuckRequest("a.bin"), try scene.request("/4M/b.bin"),
                ])
                try await queue.waitUntil { $0.first?.progress?.bytesDone ?? 0 > 0 }
                try await queue.cancel(ids, keepingPartial: keepingPartial)
                try await queue.waitUntil { $0.isEmpty }
                #expect(try await queue.history(limit: 9).map(\.outcome) == [.cancelled, .cancelled])
            }
            #expect(scene.names == (keepingPartial ? ["a.bin.segdl", "a.bin.segdl-part"] : []))
        }
    }

    @Test("A failed download keeps its error in the queue, also across a restart, and can be tried again")
    func fails() async throws {
        try await Scene.run { scene in
            let id = try await scene.run { queue in
                let id = try await queue.add([try scene.request("/1M/f.bin?fail=404:2")])[0]
                try await queue.waitUntil { $0.first?.state == .failed }
                return id
            }
            try await scene.run { queue in
                let entry = try #require(try await queue.entry(id))
                #expect(entry.state == .failed && entry.error?.status == 404 && entry.attempts == 1)
                try await queue.resume([id])
                try await queue.waitUntil { $0.isEmpty }
            }
            #expect(scene.holds("f.bin", 1 << 20))
        }
    }

    @Test("The order is kept across a restart, and an entry that is moved to the front runs next")
    func moves() async throws {
        try await Scene.run { scene in
            let ids = try await scene.run { queue in
                let ids = try await queue.add((0..<4).map { try scene.request("/1M/\($0).bin") }, paused: true)
                try await queue.move(ids[3], to: 0)
                let first = try await queue.add([try scene.request("/1M/4.bin")], paused: true, first: true)
                return first + [ids[3], ids[0], ids[1], ids[2]]
            }
            try await scene.run(limit: 1) { queue in
                #expect(try await queue.entries().map(\.id) == ids)
                try await queue.resume(ids)
                try await queue.waitUntil { $0.isEmpty }
                #expect(try await queue.history(limit: 9).reversed().map(\.id) == ids.map(\.rawValue))
            }
        }
    }

    @Test("Two entries for the same file end with that file, once", arguments: [true, false])
    func twice(named: Bool) async throws {
        try await Scene.run { scene in
            var request = try scene.request("/4M/a.bin")
            if named { request.destination = .file("a.bin") }
            let both = [request, request]
            try await scene.run { queue in
                let ids = try await queue.add(both)
                try await queue.waitUntil { $0.allSatisfy { $0.state == .failed } }
                let failed = try await queue.entries()
                #expect(failed.allSatisfy { $0.error?.code == .exists }, "\(failed.map(\.error))")
                #expect(
                    Set(try await queue.history(limit: 9).map(\.id) + failed.map(\.id.rawValue))
                        == Set(ids.map(\.rawValue)))
            }
            #expect(scene.names == ["a.bin"] && scene.holds("a.bin", 4 << 20))
        }
    }

    @Test(
        "An entry that was killed after its file was placed recognises the file as its own",
        arguments: DownloadOptions.ExistingFilePolicy.allCases)
    func recognises(policy: DownloadOptions.ExistingFilePolicy) async throws {
        try await Scene.run { scene in
            var request = try scene.stuckRequest("a.bin")
            request.ifExists = policy
            let added = request
            let record = try await scene.run { queue in
                let id = try await queue.add([added])[0]
                try await queue.waitUntil { $0.first?.progress?.bytesDone ?? 0 > 0 }
                try await queue.waitUntil { $0.first?.request.destination == .file(scene.file("a.bin")) }
                return try #require(try await queue.running().machine.entries[id]?.record)
            }
            scene.release("a.bin")
            try await scene.run { queue in try await queue.waitUntil { $0.isEmpty } }
            // As a kill between the two leaves it: the file is placed, and the entry is still in the queue.
            let database = FilePath(scene.directory + "/killed/queue.sqlite")
            let killed = try QueueDatabase(at: database)
            try killed.apply([.insert(record)])
            try killed.close()
            try await scene.run(database: database) { queue in
                try await queue.waitUntil { $0.isEmpty }
                #expect(try await queue.history(limit: 2).map(\.outcome) == [.completed])
            }
            #expect(scene.names == ["a.bin"] && scene.holds("a.bin", 64 << 20))
        }
    }

    @Test("When the disk is full a command fails, and adds nothing")
    func fullDisk() async throws {
        try await Scene.run { scene in
            try await scene.run { queue in
                let first = try await queue.add([try scene.request("/1M/a.bin")], paused: true)
                try await queue.database().writeWithoutTransaction { connection in
                    let count = try Int.fetchOne(connection, sql: "PRAGMA page_count") ?? 0
                    _ = try Int.fetchOne(connection, sql: "PRAGMA max_page_count = \(count)")
                }
                let many = try (0..<100).map { try scene.request("/1M/\($0).bin") }
                let error = await #expect(throws: DownloadError.self) { try await queue.add(many, paused: true) }
                #expect(error?.code == .space, "\(String(describing: error))")
                #expect(try await queue.entries().map(\.id) == first)
            }
        }
    }

    @Test("While the database cannot be written commands fail, and what downloads report is stored afterwards")
    func unwritable() async throws {
        try await Scene.run { scene in
            try await scene.run(limit: 1) { queue in
                var request = try scene.stuckRequest("a.bin")
                request.stallTimeout = .milliseconds(500)
                let ids = try await queue.add([request, try scene.request("/1M/b.bin")])
                try await queue.waitUntil { $0.first?.progress?.bytesDone ?? 0 > 0 }
                let database = try await queue.database()
                try await database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA query_only = ON") }
                scene.release("a.bin")
                try await queue.waitUntil { _ in scene.names == ["a.bin"] }
                await #expect(throws: DownloadError.self) { try await queue.pause(ids) }
                #expect(try await queue.entries().map(\.id) == ids)
                try await database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA query_only = OFF") }
                try await queue.waitUntil { $0.isEmpty }
                #expect(try await queue.history(limit: 9).map(\.outcome) == [.completed, .completed])
            }
            #expect(scene.names == ["a.bin", "b.bin"] && scene.holds("a.bin", 64 << 20))
        }
    }

    @Test("An entry that never began deletes nothing when it is cancelled, whatever is at its destination")
    func cancelsUnbegun() async throws {
        try await Scene.run { scene in
            try await scene.run(limit: 1) { queue in
                var request = try scene.stuckRequest("a.bin")
                request.destination = .file("a.bin")
                let first = try await queue.add([request])
                try await queue.waitUntil { $0.first?.progress?.bytesDone ?? 0 > 0 }
                request.source = try SourceURL(scene.origin.url("/1M/other"))
                let second = try await queue.add([request])
                request.destination = .file("missing/directory/a.bin")
                let third = try await queue.add([request], paused: true)
                #expect(try await queue.cancel(second + third, keepingPartial: false) == second + third)
                try await queue.pause(first)
                try await queue.waitUntil { $0.map(\.state) == [.paused] }
            }
            #expect(scene.names == ["a.bin.segdl", "a.bin.segdl-part"])
        }
    }

    @Test("A relative directory is the same for a process in any working directory")
    func relative() async throws {
        try await withTemporaryDirectory { directory in
            let up = String(
                repeating: "../", count: FileManager.default.currentDirectoryPath.filter { $0 == "/" }.count)
            let relative = FilePath(up + directory.dropFirst())
            let queue = DownloadQueue(database: relative.appending("state/q"), directory: relative.appending("files"))
            async let running: Void = queue.run()
            let request = DownloadRequest(try SourceURL("http://host/a"), to: .file("a"))
            let id = try await queue.add([request], paused: true)[0]
            #expect(try await queue.entry(id)?.request.destination == .file(FilePath(directory + "/files/a")))
            queue.shutdown()
            try await running
            #expect(FileManager.default.fileExists(atPath: directory + "/state/q"))
        }
    }

    @Test("A queue that is shut down before it runs never does, and nobody waits for it; a queue runs once")
    func unused() async throws {
        try await withTemporaryDirectory { directory in
            let queue = DownloadQueue(database: FilePath(directory + "/q"), directory: FilePath(directory))
            let entries = Task { try await queue.entries() }
            queue.shutdown()
            await #expect(throws: DownloadError.self) { try await entries.value }
            try await queue.run()
            #expect(!FileManager.default.fileExists(atPath: directory + "/q"))

            let other = DownloadQueue(database: FilePath(directory + "/q"), directory: FilePath(directory))
            async let running: Void = other.run()
            _ = try await other.entries()
            let again = await #expect(throws: DownloadError.self) { try await other.run() }
            #expect(again?.code == .usage)
            let second = DownloadQueue(database: FilePath(directory + "/q"), directory: FilePath(directory))
            let taken = await #expect(throws: DownloadError.self) { try await second.run() }
            #expect(taken?.code == .exists)
            other.shutdown()
            try await running
        }
    }

    @Test("An invalid request is refused and nothing of its batch is added; a queue that has ended accepts nothing")
    func refuses() async throws {
        try await Scene.run { scene in
            let queue = try await scene.run { queue in
                var invalid = try scene.request("/1M/b.bin")
                invalid.fields = [.range: "bytes=0-1"]
                await #expect(throws: DownloadError.self) {
                    try await queue.add([try scene.request("/1M/a.bin"), invalid], paused: true)
                }
                let output = DownloadRequest(try SourceURL("http://host/a"), to: .descriptor(1))
                await #expect(throws: DownloadError.self) { try await queue.add([output]) }
                #expect(try await queue.entries().isEmpty)
                return queue
            }
            let error = await #expect(throws: DownloadError.self) {
                try await queue.add([try scene.request("/1M/a.bin")])
            }
            #expect(error?.code == .cancelled)
        }
    }
}

extension DownloadQueue {
    /// Waits until the entries satisfy a condition.
    func waitUntil(_ condition: ([QueueEntry]) -> Bool) async throws {
        for await _ in self.changes where condition(try await self.entries()) { return }
        Issue.record("the queue has ended before the condition held")
    }
}

extension DownloadQueue {
    fileprivate func database() async throws -> DatabaseQueue {
        try #require(try await self.running().storage as? DatabaseStorage).database.queue
    }
}
