import Origin
import SegmentedDownload
import TestSupport
import Testing

/// The names of a group's downloads, and how they are found.
@Suite struct IdentityTests {
    @Test("A download is found by the id that the caller gave, or by an unused number")
    func names() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let zero = try group.add(paused: harness.stuckRequest("a"))
                let named = try group.add(paused: harness.stuckRequest("b") { $0.id = "2" })
                let next = try group.add(paused: harness.stuckRequest("c"))
                #expect(zero.id == "0" && named.id == "2" && next.id == "3")
                for download in [zero, named, next] {
                    #expect(group.download(id: download.id)?.path == download.path)
                }
                #expect(group.download(id: "1") == nil)
            }
        }
    }

    @Test("Adding a name again, or the same URL and destination, returns the download that is there")
    func sameIsSame() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let first = try group.add(paused: harness.stuckRequest("a") { $0.id = "x" })
                #expect(try group.add(harness.stuckRequest("b") { $0.id = "x" }).path == first.path)
                #expect(try group.add(harness.stuckRequest("a")).id == "x")
                #expect(try group.add(harness.stuckRequest("a") { $0.id = "y" }).id == "x")
                #expect(first.state == .paused, "the existing download keeps its state")
                let other = try harness.stuckRequest("a") { $0.destination = .file(harness.directory + "/other") }
                #expect(try group.add(paused: other).id != "x")
                let slashes = try harness.stuckRequest("d") { $0.destination = .directory(harness.directory + "//") }
                let plain = try harness.stuckRequest("d") { $0.destination = .directory(harness.directory) }
                #expect(try group.add(paused: slashes).id == group.add(paused: plain).id)
                #expect(group.downloads.count == 3)
            }
        }
    }

    @Test("After a download has ended, the same request begins a new one")
    func overMakesRoom() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let request = try harness.request("/1M/file.bin") { $0.id = "x" }
                let first = try group.add(request)
                _ = try await first.result()
                let second = try group.add(request)
                #expect(try await second.result().wasAlreadyComplete)
                #expect(try await first.result().wasAlreadyComplete == false)
                #expect(group.downloads.count == 1)
                let cancelled = try group.add(harness.stuckRequest("b"))
                await cancelled.cancel(keepingPartial: false)
                #expect(try group.add(paused: harness.stuckRequest("b")).state == .paused)
            }
        }
    }

    @Test("A group finds a download by its URL, without name and password")
    func findsByURL() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let request = try harness.stuckRequest("a")
                #expect(group.download(for: request.source) == nil)
                let download = try group.add(request)
                #expect(group.download(for: request.source)?.id == download.id)
                // User name and password are not part of a download's identity.
                let text = request.source.string.replacing("http://", with: "http://user:pass@")
                #expect(group.download(for: try SourceURL(text))?.id == download.id)
                await group.remove(download)
                #expect(group.download(for: request.source) == nil)
            }
        }
    }

    @Test("Downloads are listed in the order they came, by state and by any test")
    func lists() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let done = try group.add(harness.request("/1M/file.bin"))
                _ = try await done.result()
                for name in ["c", "a", "b"] {
                    _ = try group.add(paused: harness.stuckRequest(name) { $0.id = .init(rawValue: name) })
                }
                #expect(group.downloads.map(\.id) == [done.id, "c", "a", "b"])
                #expect(group.downloads(.completed).map(\.id) == [done.id])
                #expect(group.downloads(.paused).map(\.id) == ["c", "a", "b"])
                #expect(group.downloads { $0.path.ends(with: "a") }.map(\.id) == ["a"])
                if let a = group.download(id: "a") { await group.remove(a) }
                #expect(group.downloads.map(\.id) == [done.id, "c", "b"])
            }
        }
    }

    @Test("Downloads are added from many tasks at once, none lost and none twice")
    func manyAdders() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                // Four tasks add each of 600 downloads, in different orders.
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    for task in 0..<8 {
                        tasks.addTask {
                            for step in 0..<300 {
                                let number = (step * (task % 4 * 2 + 7) + task / 4 * 300) % 300 + task / 4 * 300
                                _ = try group.add(
                                    paused: harness.stuckRequest("\(number)") { $0.id = .init(rawValue: "n\(number)") })
                            }
                        }
                    }
                    try await tasks.waitForAll()
                }
                let expected = Set((0..<600).map { Download.ID(rawValue: "n\($0)") })
                let ids = group.downloads.map(\.id)
                #expect(ids.count == Set(ids).count)
                #expect(Set(ids).isSubset(of: expected))
                #expect(ids.allSatisfy { group.download(id: $0)?.id == $0 })
                #expect(group.summary.paused == ids.count)
                #expect(Set(ids) == expected)
            }
        }
    }

    @Test("Nothing can be added to a group that has ended, and no call waits for it")
    func ended() async throws {
        try await Harness.run { harness in
            let (group, paused) = try await harness.withGroup { group in
                (group, try group.add(paused: harness.stuckRequest("a")))
            }
            let late = await code { try group.add(harness.stuckRequest("b")) }
            #expect(late == .cancelled)
            paused.resume()
            _ = await paused.pause()
            await paused.cancel(keepingPartial: true)
            #expect(try await paused.rest().isTerminal)
            await group.waitForAll()
            for await _ in group.events { Issue.record("an ended group has no events") }
        }
    }

    @Test("The size of user information is limited")
    func labelIsBounded() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let request = try harness.stuckRequest("a") {
                    $0.userInfo = ["x": String(repeating: "y", count: 1 << 16)]
                }
                let tooLong = await code { try group.add(request) }
                #expect(tooLong == .usage)
            }
        }
    }
}
