import Foundation
import Origin
import SegmentedDownload
import Testing

@testable import segdl

/// `segdl bench`, with the real command, and its choice of the knee.
@Suite struct BenchTests {
    @Test("Every number of segments is measured, the knee is reported, and no file is left")
    func measured() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    "bench", "--json", "--counts", "1,3,auto", "--rounds", "2", origin.url("/4M/file.bin"))
                #expect(outcome.status == 0, "\(outcome)")
                let runs = outcome.events.filter { $0["event"] as? String == "measured" }
                #expect(runs.map { $0["segments"] as? Int } == [1, 3, nil])
                #expect(runs.allSatisfy { $0["bytes"] as? Int == 4 << 20 })
                #expect(runs.allSatisfy { ($0["memory_peak"] as? Int ?? 0) > 1 << 20 })
                #expect(runs.map { $0["connections_peak"] as? Int ?? 0 }[..<2] == [1, 3])
                let knee = try #require(outcome.events.last)
                #expect(knee["event"] as? String == "knee" && [1, 3].contains(knee["segments"] as? Int))
                #expect(try FileManager.default.contentsOfDirectory(atPath: command.path(".")).isEmpty)
            }
        }
    }

    @Test("A run ends after its time limit, and its file is deleted")
    func limited() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                // The origin stalls after 100,000 bytes: only the time limit can end the run.
                let url = origin.url("/64M/file.bin?stall-after=100000:all")
                let outcome = try await command.run("bench", "--json", "--counts", "2", "--seconds", "300ms", url)
                #expect(outcome.status == 0, "\(outcome)")
                #expect((outcome.events.first?["bytes"] as? Int ?? .max) < 1 << 20)
                #expect(try FileManager.default.contentsOfDirectory(atPath: command.path(".")).isEmpty)
            }
        }
    }

    @Test("A failed fetch is reported with its exit status, and a signal ends the measurement and leaves no file")
    func ended() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                #expect(try await command.run("bench", origin.url("/1M/file.bin?fail=404:all")).status == 8)
                #expect(try await command.run("bench", "--counts", "0", origin.url("/1M/file.bin")).status == 2)
                let url = origin.url("/64M/file.bin?stall-after=100000:all")
                origin.log.reset()
                let outcome = try await command.run(["bench", "--counts", "1", "--seconds", "10m", url]) { process in
                    await origin.log.waitForBytes(sent: 100_000)
                    kill(process, SIGTERM)
                }
                #expect(outcome.status == 143, "\(outcome)")
                #expect(try FileManager.default.contentsOfDirectory(atPath: command.path(".")).isEmpty)
            }
        }
    }

    @Test("The knee is the fewest segments with nearly the highest rate, in any order")
    func knee() {
        var report = BenchReport()
        #expect(report.knee.segments == nil)
        for (count, bytes) in [(16, 990), (1, 200), (4, 951), (8, 1000), (2, 700)] {
            _ = report.add(.exactly(count), [BenchFigures(seconds: 1, bytes: Int64(bytes))])
        }
        #expect(report.knee.segments == 4 && report.knee.rate == 951 && report.knee.rateMost == 1000)
        _ = report.add(.automatic, [BenchFigures(seconds: 1, bytes: 2000)])
        // Without a number near the highest rate, the knee is the best one tried.
        #expect(report.knee.segments == 8 && report.knee.rateMost == 2000)
        #expect(report.knee.text == "The knee: 8 segments reach 1000 B/s, 50 % of the highest rate.")
        let brief = BenchFigures(seconds: 0.1, bytes: 10)
        var short = BenchReport()
        _ = short.add(
            .exactly(2), [brief, BenchFigures(seconds: 0.1, bytes: 30), BenchFigures(seconds: 0.1, bytes: 20)])
        #expect(short.knee.brief && short.knee.rate == 200, "the median run")
    }

    @Test("The table fits into 80 columns")
    func table() {
        var report = BenchReport()
        let row = report.add(.exactly(32), [BenchFigures(seconds: 1000, bytes: 1023 << 20, peak: 1023 << 20)])
        #expect(row.text.columns == BenchReport.heading.columns && row.text.columns < 80)
    }
}
