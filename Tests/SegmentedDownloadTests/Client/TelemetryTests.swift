import InMemoryLogging
import Logging
import MetricsTestKit
import Origin
import SegmentedDownload
import Testing

@Suite("Logs and metrics")
struct TelemetryTests {
    @Test("A completed download is logged with its figures and counted")
    func completed() async throws {
        try await Harness.run { harness in
            let (handler, metrics) = (InMemoryLogHandler(), TestMetrics())
            var configuration = DownloadConfiguration()
            configuration.logger = Logger(label: "test") { _ in handler }
            configuration.metrics = metrics
            let result = try await harness.fetch("/1M/file.bin?fail=500:1", configuration: configuration) {
                $0.id = "one"
            }.get()
            let entries = handler.entries
            let messages = entries.filter { $0.level >= .info }.map { "\($0.message)" }
            #expect(messages == ["attempt failed", "download started", "download completed"])
            #expect(entries.allSatisfy { $0.metadata["download"] == "one" })
            let failed = try #require(entries.first { $0.level == .warning })
            #expect(failed.metadata["status"] == "500" && failed.metadata["code"] == "server")
            #expect(failed.metadata["attempt"] == "1")
            let last = try #require(entries.last { $0.level == .info })
            #expect(last.metadata["bytes"] == "1048576" && last.metadata["path"] == "\(harness.path)")
            #expect(metrics.counterTotal(label: "segdl_downloads", dimensions: [("outcome", "completed")]) == 1)
            #expect(metrics.counterTotal(label: "segdl_retries", dimensions: [("code", "server")]) == 1)
            #expect(metrics.counterTotal(label: "segdl_bytes") == result.bytesFetched)
            #expect(try metrics.expectTimer("segdl_duration").values.count == 1)
        }
    }

    @Test("A failed download is an error with the failure's code, and a secret in its URL is not logged")
    func failed() async throws {
        try await Harness.run { harness in
            let (handler, metrics) = (InMemoryLogHandler(), TestMetrics())
            var configuration = DownloadConfiguration()
            configuration.logger = Logger(label: "test") { _ in handler }
            configuration.metrics = metrics
            let url = harness.origin.url("/1M/file.bin?fail=404:all").replacing("http://", with: "http://user:secret@")
            let source = try SourceURL(url)
            _ = await harness.fetch("/1M/file.bin", configuration: configuration) { $0.source = source }
            let last = try #require(handler.entries.last)
            #expect(last.level == .error && last.metadata["code"] == "server" && last.metadata["status"] == "404")
            #expect(!handler.entries.contains { "\($0)".contains("secret") })
            #expect(metrics.counterTotal(label: "segdl_downloads", dimensions: [("outcome", "server")]) == 1)
        }
    }
}
