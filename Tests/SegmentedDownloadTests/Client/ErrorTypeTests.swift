import Testing

@testable import SegmentedDownload

/// The types of the errors that calls throw.
@Suite struct ErrorTypeTests {
    /// A transport without answers. It reports each request.
    private struct SilentTransport: HTTPTransport {
        let asked: AsyncStream<Never>.Continuation

        func withResponse<Answer: Sendable>(
            to request: TransportRequest, _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
        ) async throws -> Answer {
            self.asked.finish()
            // Ends when the task is cancelled.
            let (silence, end) = AsyncStream.makeStream(of: Never.self)
            for await _ in silence {}
            end.finish()
            throw CancellationError()
        }

        func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {}
    }

    @Test("A probe in a task that is cancelled fails with code cancelled")
    func cancelledProbe() async throws {
        let (requests, asked) = AsyncStream.makeStream(of: Never.self)
        let client = DownloadClient(
            configuration: DownloadConfiguration(), transport: SilentTransport(asked: asked), storage: StreamStorage(),
            clock: SystemClock(), seed: 0)
        var request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"))
        request.headTimeout = .seconds(3600)
        let code = await withTaskGroup(of: DownloadError.Code?.self) { [request] tasks in
            tasks.addTask {
                do throws(DownloadError) {
                    _ = try await client.probe(request)
                    return nil
                } catch {
                    return error.code
                }
            }
            for await _ in requests {}
            tasks.cancelAll()
            return await tasks.next() ?? nil
        }
        #expect(code == .cancelled)
    }

    @Test("A group throws what is thrown inside of it, in its own type, and nothing else")
    func groupErrors() async throws {
        struct Refusal: Error {
            let downloads: Int
        }
        let request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"), to: .file("/dev/null/x"))
        let count = try await withDownloadClient { client in
            do throws(Refusal) {
                return try await client.withGroup { (group) async throws(Refusal) -> Int in
                    _ = try? group.add(paused: request)
                    throw Refusal(downloads: group.downloads.count)
                }
            } catch {
                return error.downloads
            }
        }
        #expect(count == 1)
    }

    @Test("Listing downloads by a predicate throws what the predicate throws")
    func predicateErrors() async throws {
        let request = DownloadRequest(try SourceURL("http://127.0.0.1:1/file"), to: .file("/dev/null/x"))
        try await withDownloadClient { client in
            try await client.withGroup { group in
                try group.add(paused: request)
                let refused = #expect(throws: DownloadError.self) {
                    try group.downloads(where: { (_) throws(DownloadError) in throw DownloadError(.policy, "refused") })
                }
                #expect(refused?.code == .policy)
                #expect(group.downloads(where: { $0.state == .paused }).count == 1)
            }
        }
    }
}
