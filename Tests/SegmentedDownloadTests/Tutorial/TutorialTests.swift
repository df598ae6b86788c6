import Foundation
import Origin
import TestSupport
import Testing

@testable import SegmentedDownload

/// The code in the documentation's articles compiles, works as described, and is the code shown.
@Suite("Tutorial")
struct TutorialTests {
    private static let articles = [
        "GettingStarted", "PauseAndResume", "ManyFiles", "MirrorsAndDigests", "WatchingProgress", "Servers",
    ]
    private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: Self.directory.appending(path: path).standardizedFileURL, encoding: .utf8)
    }

    /// The texts between two lines, in order.
    private static func blocks(of text: String, from start: String, to end: String) -> [String] {
        text.components(separatedBy: start + "\n").dropFirst().compactMap { $0.components(separatedBy: end).first }
    }

    @Test("An article shows the compiled code, character for character", arguments: Self.articles)
    func isShown(article: String) throws {
        let page = try Self.text("../../../Sources/SegmentedDownload/SegmentedDownload.docc/\(article).md")
        let shown = Self.blocks(of: page, from: "```swift", to: "```")
        let compiled = Self.blocks(of: try Self.text("\(article).swift"), from: "// begin", to: "// end")
        #expect(shown.count >= 3)
        #expect(shown == compiled)
    }

    @Test("A file is described and fetched, and errors are explained")
    func gettingStarted() async throws {
        try await Harness.run { harness in
            let url = harness.origin.url("/3M/file.bin")
            #expect(try await describe(url) == "file.bin: 3145728 bytes, in segments")
            let stream = harness.origin.url("/3M/stream.bin?ranges=no&length=chunked")
            #expect(try await describe(stream) == "stream.bin: of unknown length, in one stream")
            let result = try await fetch(url, to: FilePath(harness.path))
            #expect(result.bytes == 3.mebibytes && harness.contains(seed: 1, length: 3.mebibytes))

            let careful = try carefulRequest(for: harness.origin.url("/2M/file.bin"), in: FilePath(harness.directory))
            #expect(
                try await fetchOrExplain(careful) == "\(harness.path) is there: 2097152 bytes, verified by etag")
            let other = try await fetchOrExplain(try harness.request("/3M/file.bin"))
            #expect(other.hasPrefix("something is in the way: "))
            let long = try await fetchOrExplain(
                try harness.request("/3M/file.bin") {
                    $0.lengthMaximum = 1
                    $0.ifExists = .overwrite
                })
            #expect(long.hasPrefix("no room: "))
            let missing = try await fetchOrExplain(
                try harness.request("/3M/x?fail=404:all") { $0.destination = .directory(harness.directory) })
            #expect(missing.hasPrefix("not at all: ") && missing.contains("404"))

            var configuration = configuration()
            configuration.memory = nil
            let refused = await harness.fetch("/3M/file.bin", configuration: configuration)
            #expect(refused.code == .policy)
        }
    }

    @Test("Paused downloads are listed, stored and resumed, one by one and all at once")
    func pauseAndResume() async throws {
        try await Harness.run { harness in
            let state = try #require(try await fetch(0.125, of: try harness.stuckRequest()))
            #expect(state.bytesDone >= 1.mebibytes)
            let lines = try await interrupted(in: FilePath(harness.directory))
            #expect(lines == ["\(harness.path): \(state.bytesDone) of 8388608 bytes"])
            try save(state, to: harness.directory + "/state.json")
            try await harness.release("/8M/file.bin")
            let result = try await resume(fromStateAt: harness.directory + "/state.json")
            #expect(result.bytes == 8.mebibytes && harness.contains(seed: 1, length: 8.mebibytes))
            // Bytes on disk are not requested again.
            let begun = harness.origin.log.snapshot().requests.filter { $0["range"] == "bytes=0-" }
            #expect(begun.count == 1)
            let again = try await fetch(2, of: try harness.request("/8M/file.bin"))
            #expect(again == nil, "the file is complete already")

            let partial = harness.directory + "/adopted.bin.part"
            try harness.write(OriginContent(seed: 1).bytes(0..<3.mebibytes), to: partial)
            let adopted = try await complete(FilePath(partial), from: try SourceURL(harness.origin.url("/8M/x")))
            #expect(adopted.path.string == harness.directory + "/adopted.bin" && adopted.verifiedBy == .comparison)
            try harness.remove(adopted.path.string)

            try harness.remove(harness.path)
            try await harness.interrupt("/8M/other.bin?stall-after=300000:all", after: 1.mebibytes) {
                $0.stallTimeout = .seconds(3600)
            }
            try await harness.release("/8M/other.bin")
            try harness.write([1, 2, 3], to: harness.directory + "/foreign.segdl")
            let (summary, leftAlone) = try await resumeAll(in: FilePath(harness.directory))
            #expect(summary.completed == 1 && summary.isComplete)
            #expect(
                leftAlone.count == 1 && leftAlone.allSatisfy { $0.hasPrefix(harness.directory + "/foreign: state: ") })
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test("A paused download does nothing until it is resumed")
    func restsMeanwhile() async throws {
        try await Harness.run { harness in
            // No byte can arrive before the pause.
            try await harness.origin.stopAccepting()
            let result = try await fetch(try harness.request("/3M/file.bin")) {
                #expect(harness.origin.log.snapshot().requests.isEmpty)
                try await harness.origin.resumeAccepting()
            }
            #expect(result.bytes == 3.mebibytes && harness.contains(seed: 1, length: 3.mebibytes))
        }
    }

    @Test("Many files share one budget, and a failed one is named")
    func manyFiles() async throws {
        try await Harness.run { harness in
            let urls = ["/1M/a", "/1M/b", "/1M/c?fail=404:all", "/1M/d"].map { harness.origin.url($0) }
            let (summary, failures) = try await fetchAll(urls, into: FilePath(harness.directory))
            #expect(summary.completed == 3 && summary.failed == 1 && summary.bytes == 3.mebibytes)
            #expect(failures.count == 1 && failures.allSatisfy { $0.contains("404") })
            #expect(try harness.names() == ["a", "b", "d"])

            let entries = try await fetchForUser("ada", [urls[0], urls[1]], in: FilePath(harness.directory))
            #expect(entries.map(\.outcome) == [.completed, .completed])
            #expect(harness.exists(harness.directory + "/ada/a") && harness.exists(harness.directory + "/ada/b"))
        }
    }

    @Test("An urgent file starts first, and limits change while downloads run")
    func urgent() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.limits.downloads = 1
            let events = try await harness.withGroup(configuration) { group in
                let events = group.events
                let first = try group.add(harness.stuckRequest("first"))
                await first.reached(1)
                let rest = try ["patient", "urgent"].map { name in
                    try harness.request("/100/\(name)") { $0.destination = .file(harness.directory + "/" + name) }
                }
                try group.add(rest[0])
                #expect(try addUrgently(rest[1], to: group).request.priority == 1)
                leaveRoomForOthers(group)
                #expect(group.limits.bytesPerSecond == 1 << 20 && group.limits.downloads == 1)
                await first.cancel(keepingPartial: false)
                #expect(await group.waitForAll().completed == 2)
                return events
            }
            var order: [String?] = []
            for await case .download(let download, .started) in events {
                order.append(download.path.lastComponent?.string)
            }
            #expect(order == ["first", "urgent", "patient"])
        }
    }

    @Test("Mirrors are used, digests are verified, and damage is found and repaired")
    func mirrorsAndDigests() async throws {
        try await Harness.run { harness in
            var digest = RunningDigest(.sha256)
            OriginContent(seed: 1).bytes(0..<8.mebibytes).withUnsafeBytes { digest.update($0) }
            let sha256 = digest.hex
            let (url, mirror) = (harness.origin.url("/8M/file.bin"), harness.origin.url("/8M/mirror/file.bin"))
            let result = try await fetch(url, mirrors: [mirror], sha256: sha256, to: FilePath(harness.path))
            #expect(result.verifiedBy == .digest && harness.contains(seed: 1, length: 8.mebibytes))
            let path = FilePath(harness.directory + "/other.bin")
            let zeros = String(repeating: "0", count: 64)
            #expect(await code { try await fetch(url, mirrors: [], sha256: zeros, to: path) } == .integrity)
            #expect(await code { try await fetch(url, mirrors: [], sha256: "none", to: path) } == .usage)

            #expect(try await damage(in: FilePath(harness.path)) == [])
            let file = try #require(FileHandle(forUpdatingAtPath: harness.path))
            try file.seek(toOffset: 3_000_000)
            try file.write(contentsOf: Data("damage".utf8))
            try file.close()
            #expect(try await damage(in: FilePath(harness.path)) == [2.mebibytes..<3.mebibytes])
            harness.origin.log.reset()
            try await repair(FilePath(harness.path), from: url)
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
            #expect(try await damage(in: FilePath(harness.path)) == [])

            try harness.remove(harness.path)
            let list = "\(sha256)  file.bin\n"
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: \(list.utf8.count)\r\n\r\n\(list)"
            let raw = try #require(answer.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
            let sums = harness.origin.url("/1/SUMS?raw=\(raw)")
            let listed = try await fetch(url, listedAt: sums, to: FilePath(harness.path))
            #expect(listed.verifiedBy == .digest && listed.digests.map(\.hex) == [sha256])
            #expect(await code { try await fetch(url, listedAt: sums, to: path) } == .usage)
        }
    }

    @Test("Observers receive the progress of one file and of a group")
    func watchingProgress() async throws {
        try await Harness.run { harness in
            var told: [String] = []
            // The file is stuck until its progress was told.
            let (progress, teller) = AsyncStream.makeStream(of: Void.self)
            async let released: Void = {
                for await _ in progress { break }
                try await harness.release("/8M/file.bin")
            }()
            let result = try await fetch(try harness.request("/8M/file.bin?stall-after=300000:all")) { text in
                told.append(text)
                if text.hasSuffix(" % over 4 connections") { teller.yield() }
            }
            teller.finish()
            try await released
            #expect(result.bytes == 8.mebibytes)
            #expect(told.contains { $0.hasSuffix(" % over 4 connections") }, "\(told)")

            var ends: [String] = []
            let requests = try ["/100/a", "/100/b?fail=404:all", "/200/c"].map { resource in
                try harness.request(resource) { $0.destination = .directory(harness.directory) }
            }
            let summary = try await fetchAll(requests) { ends.append($0) }
            #expect(summary.completed == 2 && summary.failed == 1)
            #expect(ends.count == 3 && Set(ends).isSuperset(of: ["0: 100 bytes", "2: 200 bytes"]), "\(ends)")

            try await harness.withGroup { group in
                try group.add(paused: try harness.request("/1M/x"))
                #expect(rows(of: group) == ["\(harness.path): paused, 0 bytes"])
            }
        }
    }
}
