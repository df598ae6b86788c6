import Foundation
import Origin
import SegmentedDownload
import Testing

/// Memory, threads and descriptors of a long-running program must not grow. `scripts/leaks` runs this alone: other
/// tests would affect the figures.
@Suite("Leaks", .enabled(if: ProcessInfo.processInfo.environment["SEGDL_LEAKS"] != nil, "run by scripts/leaks"))
struct LeakTests {
    /// The downloads of a round: everything that opens, keeps or abandons a resource.
    private static let resources = [
        "/1M/file.bin", "/1M/file.bin?redirect-hops=2", "/1M/file.bin?reset-after=100000:2", "/1M/file.bin?ranges=no",
        "/1M/file.bin?length=none", "/1M/file.bin?ranges=garbage", "/1M/file.bin?fail=404:all", "/1M/file.bin?limit=1",
    ]

    private struct Held {
        var descriptors = 0
        var threads = 0
        /// `VmRSS`, in KiB.
        var memory = 0

        static func now() throws -> Held {
            var held = Held()
            held.descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
            for line in status.split(separator: "\n") {
                let number = Int(line.filter(\.isNumber)) ?? 0
                if line.hasPrefix("Threads:") { held.threads = number }
                if line.hasPrefix("VmRSS:") { held.memory = number }
            }
            return held
        }
    }

    @Test("A thousand downloads leave descriptors, threads and memory unchanged")
    func thousand() async throws {
        try await Harness.run { harness in
            // 200 fill every pool and cache; 800 or more that follow reveal any growth.
            let rounds = ProcessInfo.processInfo.environment["SEGDL_LEAKS"].flatMap { Int($0) }.map { $0 / 200 } ?? 0
            try await Self.round(harness, downloads: 200)
            let before = try await Self.settled(harness, as: nil)
            var after = before
            for count in 1..<max(rounds, 5) {
                try await Self.round(harness, downloads: 200)
                after = try await Self.settled(harness, as: before)
                print("after \(200 * count): \(after), at first \(before)")
            }
            #expect(after.descriptors <= before.descriptors)
            #expect(after.threads <= before.threads)
            // 8 MiB in 800 downloads are 10 KiB each: less than one leaked connection, buffer or response.
            #expect(after.memory - before.memory < 8 << 10, "from \(before.memory) to \(after.memory) KiB")
        }
    }

    /// Half of the downloads have a client each, like the command; half share one.
    private static func round(_ harness: Harness, downloads: Int) async throws {
        for index in 0..<downloads / 2 {
            _ = await harness.fetch(Self.resources[index % Self.resources.count])
            Self.clean(harness)
        }
        try await withDownloadClient { client in
            for index in 0..<downloads / 2 {
                let request = try harness.request(Self.resources[index % Self.resources.count])
                if index % 5 == 4 {
                    try await Self.pauseAndDrop(request, client)
                } else {
                    _ = try? await client.download(request)
                }
                Self.clean(harness)
            }
        }
        harness.origin.reset()
    }

    private static func pauseAndDrop(_ request: DownloadRequest, _ client: DownloadClient) async throws {
        try await client.withGroup { group in
            let download = try group.add(request)
            for await event in download.events {
                if case .started = event { await download.pause() }
            }
        }
    }

    private static func clean(_ harness: Harness) {
        for path in [harness.path, harness.part, harness.manifest] { try? harness.remove(path) }
    }

    /// What is held after the connections have closed: at most `expected`, or the state after 5 s.
    private static func settled(_ harness: Harness, as expected: Held?) async throws -> Held {
        for _ in 0..<50 {
            try await Task.sleep(for: .milliseconds(100))
            guard let expected else { continue }
            let held = try Held.now()
            if held.descriptors <= expected.descriptors, held.threads <= expected.threads { return held }
        }
        return try Held.now()
    }
}
