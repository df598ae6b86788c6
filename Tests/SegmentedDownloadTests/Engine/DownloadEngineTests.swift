import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

/// The engine's loop, without a network.
@Suite("The engine")
struct DownloadEngineTests {
    @Test("A step on disk that cannot be done ends the download with its reason")
    func failedStep() async throws {
        try await withTemporaryDirectory { directory in
            let client = DownloadClient(
                configuration: DownloadConfiguration(), transport: EngineOffice.NoTransport(),
                storage: WatchedStorage(), clock: SystemClock(), seed: 1)
            let request = DownloadRequest(try SourceURL("http://host/file.bin"), to: .file(directory))
            do {
                _ = try await client.download(request)
                Issue.record("a directory was replaced by a file")
            } catch let error as DownloadError {
                #expect(error.code == .exists && error.message.contains("is a directory"))
            }
        }
    }
}
