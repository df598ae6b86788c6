import Foundation
import Origin
import SegmentedDownload
import TestSupport
import Testing

/// Restoring interrupted downloads after a relaunch.
@Suite struct RestoreTests {
    /// Leaves interrupted downloads behind, as a stopped process does.
    private static func leave(_ names: [String], in harness: Harness) async throws {
        try await harness.withGroup { group in
            let downloads = try names.map { name in
                try group.add(
                    harness.stuckRequest(name) {
                        $0.id = .init(rawValue: "id of " + name)
                        $0.priority = 0.25
                        $0.userInfo = ["title": name]
                    })
            }
            for download in downloads { await download.reached(1.mebibytes) }
            await group.pauseAll()
        }
        for name in names { try await harness.release("/8M/" + name) }
    }

    @Test("Interrupted downloads are found again with name, priority and user information, and rest")
    func paused() async throws {
        try await Harness.run { harness in
            try await Self.leave(["a", "b"], in: harness)
            harness.origin.log.reset()
            try await harness.withGroup { group in
                let restoration = try await group.restore(from: FilePath(harness.directory))
                #expect(restoration.omissions.isEmpty)
                #expect(restoration.downloads.map(\.id) == ["id of a", "id of b"])
                for download in restoration.downloads {
                    let saved = try await SavedDownload(at: download.path)
                    #expect(download.state == .paused && download.request.priority == 0.25)
                    #expect(download.request.userInfo == saved.userInfo && download.request.userInfo.count == 1)
                    #expect(download.snapshot.bytesDone == saved.bytesDone && saved.bytesDone >= 1.mebibytes)
                    #expect(download.snapshot.bytesTotal == 8.mebibytes)
                    #expect(download.snapshot.bytesDurable == saved.bytesDone)
                    #expect(group.download(for: download.request.source)?.id == download.id)
                    #expect(try await download.rest() == .paused(download.snapshot))
                }
                #expect(await group.waitForAll().paused == 2)
                let again = try await group.restore(from: FilePath(harness.directory))
                #expect(again.downloads.map(\.id) == ["id of a", "id of b"] && group.downloads.count == 2)
            }
            #expect(harness.origin.log.snapshot().requests.isEmpty)
        }
    }

    @Test("Restored downloads continue by themselves if the policy says so, and fetch only the missing bytes")
    func running() async throws {
        try await Harness.run { harness in
            try await Self.leave(["a"], in: harness)
            let kept = try await SavedDownload(at: FilePath(harness.directory + "/a")).bytesDone
            harness.origin.log.reset()
            try await harness.withGroup { group in
                let restoration = try await group.restore(from: FilePath(harness.directory), .running)
                let download = try #require(restoration.downloads.first)
                let result = try await download.result()
                #expect(download.snapshot.bytesDurable == 8.mebibytes)
                #expect(harness.bytesRequested(of: 8.mebibytes) == 8.mebibytes - kept)
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: result.path.string, length: 8.mebibytes) == nil)
            }
        }
    }

    @Test("After a relaunch observers are bound to the restored download, found by its URL")
    func observersBound() async throws {
        try await Harness.run { harness in
            try await Self.leave(["a"], in: harness)
            try await harness.withGroup { group in
                try await group.restore(from: FilePath(harness.directory))
                let source = try harness.request("/8M/a").source
                let download = try #require(group.download(for: source))
                download.resume()
                var words: [String] = []
                for await event in download.events {
                    if case .started(let start) = event { words.append(start.resumedFrom > 0 ? "resumed" : "begun") }
                    if case .completed = event { words.append("completed") }
                }
                #expect(words == ["resumed", "completed"])
            }
        }
    }

    @Test("The id and the user information in a manifest survive runs that do not repeat them")
    func labelStays() async throws {
        try await Harness.run { harness in
            try await Self.leave(["a"], in: harness)
            try await harness.withGroup { group in
                let download = try group.add(harness.stuckRequest("a"))
                await download.reached(1)
                await download.pause()
            }
            let saved = try await SavedDownload(at: FilePath(harness.directory + "/a"))
            #expect(saved.id == "id of a" && saved.userInfo == ["title": "a"])
        }
    }

    @Test("Damaged and foreign manifests are reported and left as they are")
    func damaged() async throws {
        try await Harness.run { harness in
            try await Self.leave(["a", "b"], in: harness)
            var bytes = try harness.bytes(harness.directory + "/b.segdl")
            bytes[30] ^= 1
            try harness.write(bytes, to: harness.directory + "/b.segdl")
            try harness.write(Array("{}".utf8), to: harness.directory + "/c.segdl")
            try harness.write([], to: harness.directory + "/d.segdl")
            try FileManager.default.createDirectory(
                atPath: harness.directory + "/e.segdl", withIntermediateDirectories: false)
            let before = try FileManager.default.contentsOfDirectory(atPath: harness.directory).sorted()
            try await harness.withGroup { group in
                let restoration = try await group.restore(from: FilePath(harness.directory))
                #expect(restoration.downloads.map(\.id) == ["id of a"])
                let names = restoration.omissions.map { $0.path.string.suffix(1) }
                #expect(names == ["b", "c", "d", "e"])
                let codes = restoration.omissions.map(\.error.code)
                #expect(codes == [.state, .state, .state, .state])
            }
            let left = try harness.names()
            #expect(left == before)
            #expect(try harness.bytes(harness.directory + "/b.segdl") == bytes)
            let missing = await code {
                try await harness.withGroup { try await $0.restore(from: FilePath(harness.directory + "/none")) }
            }
            #expect(missing == .file)
        }
    }

    @Test("A download in use by another process is reported as such, and not added")
    func locked() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { first in
                // Long enough that its manifest is written at the start, not with the first checkpoint.
                let running = try first.add(
                    harness.request("/16M/a?stall-after=300000:all") {
                        $0.destination = .file(harness.directory + "/a")
                        $0.stallTimeout = .seconds(3600)
                    })
                await running.reached(1)
                // Another client: locks belong to open files, so one process is enough.
                try await harness.withGroup { second in
                    let restoration = try await second.restore(from: FilePath(harness.directory))
                    #expect(restoration.downloads.isEmpty && second.downloads.isEmpty)
                    #expect(restoration.omissions.map(\.error.code) == [.exists])
                    #expect(restoration.omissions.first?.error.message.contains("\(getpid())") == true)
                    await running.pause()
                    #expect(try await second.restore(from: FilePath(harness.directory)).downloads.count == 1)
                    running.resume()
                    await running.reached(1)
                    // It was restored while the lock was free; the lock decides when it is resumed.
                    let late = try #require(second.downloads.first)
                    late.resume()
                    let refused = await code { try await late.result() }
                    #expect(refused == .exists)
                }
                await running.cancel(keepingPartial: false)
            }
        }
    }

    @Test("Two interrupted downloads of one name are both found")
    func sameName() async throws {
        try await Harness.run { harness in
            for name in ["a", "b"] {
                try await harness.withGroup { group in
                    let download = try group.add(harness.stuckRequest(name) { $0.id = "x" })
                    await download.reached(1)
                    await download.pause()
                }
            }
            try await harness.withGroup { group in
                let found = try await group.restore(from: FilePath(harness.directory)).downloads.map {
                    $0.path.string.suffix(1)
                }
                #expect(found == ["a", "b"])
                #expect(group.download(id: "x")?.path.string.suffix(1) == "a")
            }
        }
    }
}
