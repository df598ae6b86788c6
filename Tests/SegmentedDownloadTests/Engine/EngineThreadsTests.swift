import Foundation
import TestSupport
import Testing

@testable import SegmentedDownload

/// The threads on which the library blocks.
@Suite struct EngineThreadsTests {
    private static func nested() async -> String { threadName() }

    @Test("Blocking work that belongs to no download runs on the process's threads for it, also from the main actor")
    @MainActor func aside() async {
        let names = await EngineThreads.aside { [threadName(), await Self.nested()] }
        #expect(names.allSatisfy { $0.hasPrefix("SGLTN-TP-#") }, "\(names)")
    }

    @Test("Blocking work from a task that belongs to no actor runs on the process's threads for it")
    func asideOfNoActor() async {
        let names = await EngineThreads.aside { [threadName(), await Self.nested()] }
        #expect(names.allSatisfy { $0.hasPrefix("SGLTN-TP-#") }, "\(names)")
    }

    @Test("A client's blocking work runs on threads of the client")
    func ofClient() async throws {
        let names = try await EngineThreads.withThreads { threads in
            await threads.run(.stepping) { [threadName(), await Self.nested()] }
        }
        #expect(names.allSatisfy { $0.hasPrefix("TP-#") }, "\(names)")
    }

    @Test("Threads and connections that end with the process are kept after their client")
    func untilExit() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.endsWithProcess = true
            let request = try harness.request("/1M/file.bin")
            let result = try await withDownloadClient(configuration) { try await $0.download(request) }
            #expect(result.bytes == 1 << 20)
            // swift-nio and async-http-client assert in debug builds that nothing is released before it is shut down.
        }
    }

    @Test("An error of blocking work comes back in its own type")
    func failing() async {
        struct Refusal: Error {}
        await #expect(throws: Refusal.self) {
            try await EngineThreads.aside { () throws(Refusal) in throw Refusal() }
        }
    }

    @Test("The check of a file ends when its task is cancelled")
    func cancelledCheck() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/file"
            try Data(count: 3 << 20).write(to: URL(fileURLWithPath: path))
            let digest = try #require(ExpectedDigest(.crc32, hex: "00000000"))
            let code = await withTaskGroup(of: DownloadError.Code?.self) { tasks in
                tasks.cancelAll()
                tasks.addTask {
                    do throws(DownloadError) {
                        _ = try await FileCheck(of: FilePath(path), digests: [digest])
                        return nil
                    } catch {
                        return error.code
                    }
                }
                return await tasks.next() ?? nil
            }
            #expect(code == .cancelled)
        }
    }
}
