import Foundation
import Origin
import SegmentedDownload
import TestSupport
import Testing

/// Separate groups, and their files on disk.
@Suite struct NamedGroupTests {
    private func withNamed<Answer: Sendable>(
        _ name: String, in harness: Harness, _ body: (DownloadGroup) async throws -> Answer
    ) async throws -> Answer {
        try await withDownloadClient { client in
            try await client.withGroup(named: name, in: FilePath(harness.directory), body)
        }
    }

    @Test("Named groups keep files, interrupted downloads and history apart")
    func apart() async throws {
        try await Harness.run { harness in
            for name in ["alice", "bob"] {
                try await self.withNamed(name, in: harness) { group in
                    #expect(group.name == name && group.directory.string == harness.directory + "/" + name)
                    let done = try group.add(harness.request("/1M/file.bin") { $0.destination = .directory(".") })
                    #expect(try await done.result().path == group.directory.appending("file.bin"))
                    let stuck = try group.add(harness.stuckRequest { $0.destination = .file("sub/\(name)") })
                    await stuck.reached(1)
                    await stuck.pause()
                }
            }
            try await self.withNamed("alice", in: harness) { group in
                #expect(try await group.historyEntries().map(\.path) == [group.directory.appending("file.bin")])
                #expect(try await group.restore().downloads.isEmpty)
                let restored = try await group.restore(from: group.directory.appending("sub")).downloads
                #expect(restored.map(\.path) == [group.directory.appending("sub/alice")])
                // Restored by its path: the group's directory is not prepended again.
                restored.first?.resume()
                await restored.first?.reached(1)
                await restored.first?.cancel(keepingPartial: false)
                #expect(!harness.exists(group.directory.appending("sub/alice.segdl").string))
            }
            #expect(harness.exists(harness.directory + "/bob/sub/bob.segdl"))
        }
    }

    @Test("Named groups have limits of their own")
    func ownLimits() async throws {
        try await Harness.run { harness in
            try await withDownloadClient { client in
                var limits = DownloadLimits()
                limits.connections = 1
                try await client.withGroup(named: "slow", in: FilePath(harness.directory), limits: limits) { group in
                    let request = try harness.request("/4M/file.bin") { $0.destination = .directory("") }
                    #expect(try await group.add(request).result().connectionsPeak == 1)
                }
                try await client.withGroup(named: "fast", in: FilePath(harness.directory)) { group in
                    let request = try harness.request("/4M/file.bin?rate=4M") { $0.destination = .directory("") }
                    #expect(try await group.add(request).result().connectionsPeak == 4)
                }
            }
        }
    }

    @Test(
        "A group's name that leads out of the directory is refused",
        arguments: ["", ".", "..", "a/b", "/etc", ".hidden", "-x", "a\u{202E}b"])
    func badNames(name: String) async throws {
        try await Harness.run { harness in
            let refused = await code { try await self.withNamed(name, in: harness) { _ in } }
            #expect(refused == .usage)
            let left = try harness.names()
            #expect(left == [])
        }
    }

    @Test("What is on disk is counted: finished files, parts and manifests that are ours")
    func usage() async throws {
        try await Harness.run { harness in
            try await self.withNamed("alice", in: harness) { group in
                #expect(try await group.diskUsage() == DiskUsage())
                _ = try await group.add(harness.request("/3M/a") { $0.destination = .file("a") }).result()
                let stuck = try group.add(harness.stuckRequest { $0.destination = .file("deep/er/b") })
                await stuck.reached(1)
                await stuck.pause()
                try harness.write([1, 2, 3], to: group.directory.string + "/mine")
                let usage = try await group.diskUsage()
                #expect(usage.files == 2 && usage.finished == 3.mebibytes)
                #expect(usage.parts >= 8.mebibytes && usage.manifests > 100)
                #expect(usage.total == usage.finished + usage.parts + usage.manifests)
                #expect(try await group.freeSpace() > 0)
                #expect(try await DiskUsage(of: FilePath(harness.directory)) == usage)
            }
        }
    }

    @Test("Clearing a named group deletes what is provably ours, and nothing else")
    func deleteFiles() async throws {
        try await Harness.run { harness in
            try await self.withNamed("alice", in: harness) { group in
                let names = ["done", "altered", "linked"]
                for name in names {
                    _ = try await group.add(harness.request("/1M/\(name)") { $0.destination = .file(name) }).result()
                }
                let running = try group.add(harness.stuckRequest { $0.destination = .file("running") })
                let paused = try group.add(harness.stuckRequest("p") { $0.destination = .file("sub/paused") })
                await running.reached(1)
                await paused.reached(1)
                await paused.pause()
                let base = group.directory.string
                let handle = try #require(FileHandle(forWritingAtPath: base + "/altered"))
                try handle.write(contentsOf: Data([1, 2, 3]))
                try handle.close()
                try FileManager.default.linkItem(atPath: base + "/linked", toPath: base + "/other name")
                try harness.write([1], to: base + "/mine")
                try harness.write(Array("mine".utf8), to: base + "/mine.segdl")
                try harness.write([1], to: base + "/lonely.segdl-part")
                try harness.write([1], to: harness.directory + "/outside")
                try FileManager.default.createSymbolicLink(
                    atPath: base + "/out", withDestinationPath: harness.directory)
                let deleted = try await group.deleteFiles()
                #expect(deleted.files == 3 && deleted.finished == 1.mebibytes)
                #expect(group.downloads.isEmpty)
                let left = try FileManager.default.subpathsOfDirectory(atPath: base).sorted()
                #expect(
                    left == [
                        ".segdl-history", "altered", "linked", "lonely.segdl-part", "mine", "mine.segdl", "other name",
                        "out", "sub",
                    ])
                #expect(harness.exists(harness.directory + "/outside"))
            }
        }
    }

    @Test("Clearing a group without a name deletes the files of its downloads, and nothing else")
    func deleteFilesUnnamed() async throws {
        try await Harness.run { harness in
            _ = await harness.fetch("/1M/other") { $0.destination = .file(harness.directory + "/other") }
            try await harness.withGroup { group in
                _ = try await group.add(harness.request("/1M/file.bin")).result()
                let stuck = try group.add(harness.stuckRequest("b"))
                await stuck.reached(1)
                #expect(try await group.deleteFiles().files == 2)
            }
            let left = try harness.names()
            #expect(left == ["other"])
        }
    }
}
