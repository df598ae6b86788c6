import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

/// How a group's downloads are found.
@Suite("Registered downloads")
struct DownloadRegistryTests {
    private static func job(
        _ number: Int, _ url: String = "http://host/file", to path: String? = nil, id: String? = nil,
        _ change: (inout DownloadRequest) -> Void = { _ in }
    ) throws -> DownloadJob {
        var request = DownloadRequest(try SourceURL(url), to: .file(path ?? "file\(number)"))
        request.id = id.map { Download.ID(rawValue: $0) }
        change(&request)
        return DownloadJob(
            id: DownloadID(number), request: request, followers: [], storage: StreamStorage(), placed: PlacedFiles())
    }

    private static func numbers(_ jobs: [DownloadJob]) -> [Int] { jobs.map(\.id.rawValue) }

    @Test("Downloads are listed in the order they were added, however many go")
    func order() throws {
        var registry = DownloadRegistry()
        let jobs = try (0..<200).map { try Self.job($0) }
        for job in jobs { _ = registry.add(job) }
        #expect(Self.numbers(registry.jobs) == Array(0..<200) && registry.count == 200)
        for job in jobs where job.id.rawValue % 7 != 0 {
            let isRemoved = registry.remove(job)
            let isRemovedAgain = registry.remove(job)
            #expect(isRemoved && !isRemovedAgain)
        }
        let left = Array(stride(from: 0, to: 200, by: 7))
        #expect(Self.numbers(registry.jobs) == left && registry.count == left.count)
        _ = registry.add(try Self.job(200))
        registry.remove(jobs[7])
        #expect(Self.numbers(registry.jobs) == left.filter { $0 != 7 } + [200])
    }

    @Test("A download is found by its name, by its number where it has none, and by its source")
    func found() throws {
        var registry = DownloadRegistry()
        let (named, unnamed) = (try Self.job(0, id: "name"), try Self.job(1))
        for job in [named, unnamed] { _ = registry.add(job) }
        #expect(registry.job(Download.ID(rawValue: "name")) === named)
        #expect(registry.job(Download.ID(rawValue: "1")) === unnamed)
        #expect(registry.job(Download.ID(rawValue: "0")) == nil)
        #expect(Self.numbers(registry.jobs(try SourceURL("http://host/file"))) == [0, 1])
        #expect(registry.jobs(try SourceURL("http://host/other")).isEmpty)
        registry.remove(named)
        #expect(registry.job(Download.ID(rawValue: "name")) == nil)
        #expect(Self.numbers(registry.jobs(try SourceURL("http://host/file"))) == [1])
        registry.remove(unnamed)
        #expect(registry.jobs(try SourceURL("http://host/file")).isEmpty && registry.count == 0)
    }

    @Test("A request finds the download it names or describes, as long as that is not over")
    func described() throws {
        var registry = DownloadRegistry()
        let job = try Self.job(0, to: "dir/file", id: "name")
        _ = registry.add(job)
        #expect(registry.job(try Self.job(1, to: "./dir/file").request) === job)
        #expect(registry.job(try Self.job(1, "http://elsewhere/", to: "other", id: "name").request) === job)
        #expect(registry.job(try Self.job(1, to: "other").request) == nil)
        #expect(registry.job(try Self.job(1, "http://elsewhere/", to: "dir/file").request) == nil)
        job.update(state: .completed)
        #expect(registry.job(try Self.job(1, to: "dir/file").request) == nil)
        #expect(registry.job(Download.ID(rawValue: "name")) === job)
    }

    @Test("A new download takes the place of those that have its name or make the same")
    func replaced() throws {
        var registry = DownloadRegistry()
        let jobs = [
            try Self.job(0, to: "a", id: "name"), try Self.job(1, to: "b"), try Self.job(2, to: "c"),
            try Self.job(3, to: "b", id: "name"),
        ]
        for job in jobs.dropLast() {
            let replaced = registry.add(job)
            #expect(replaced.isEmpty)
        }
        let replaced = registry.add(jobs[3])
        #expect(Self.numbers(replaced) == [0, 1])
        #expect(Self.numbers(registry.jobs) == [2, 3])
        // The replaced entry is removed, and no other entry loses its name.
        registry.remove(jobs[0])
        #expect(registry.job(Download.ID(rawValue: "name")) === jobs[3])
        #expect(registry.job(jobs[1].request) === jobs[3])
    }

    @Test("A request that states more than a download, or selects another representation, is not answered by it")
    func content() throws {
        let digest = try #require(ExpectedDigest("crc32=00000000"))
        let changes: [(inout DownloadRequest) -> Void] = [
            { $0.digests = [digest] }, { $0.lengthExpected = 5 }, { $0.part = .init(first: 1) },
            { $0.pieceDigests = PieceDigests(length: 1, algorithm: .crc32, hexes: ["00000000"]) },
        ]
        for change in changes {
            var registry = DownloadRegistry()
            let (plain, stating) = (try Self.job(0, to: "a"), try Self.job(1, to: "a", change))
            _ = registry.add(plain)
            #expect(registry.job(stating.request) == nil)
            let replaced = registry.add(stating)
            // The first download goes on, and both are found.
            #expect(replaced.isEmpty && registry.job(plain.request) === plain)
            #expect(registry.job(stating.request) === stating)
            registry.remove(plain)
            #expect(registry.job(stating.request) === stating)
        }
        var registry = DownloadRegistry()
        let verified = try Self.job(0, to: "a", changes[0])
        _ = registry.add(verified)
        let plain = try Self.job(1, to: "a").request
        #expect(registry.job(plain) === verified, "a verified file is also one without a digest")
        #expect(registry.job(plain, ["accept": "text/plain"]) == nil)
    }

    @Test("A number that is the name of a download is not given to another one")
    func numbers() throws {
        var registry = DownloadRegistry()
        _ = registry.add(try Self.job(0, id: "1"))
        let given = (0..<3).map { _ in registry.number().rawValue }
        #expect(given == [0, 2, 3])
    }
}
