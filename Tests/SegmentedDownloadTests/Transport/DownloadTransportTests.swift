import Foundation
import HTTPTypes
import Origin
import SegmentedDownload
import Synchronization
import TestSupport
import Testing

/// Downloads through a transport that the program gives instead of the built-in client.
@Suite("A transport of the program's own")
struct DownloadTransportTests {
    private static func isRight(_ path: String, length: Int64) -> Bool {
        OriginContent(seed: 1).firstMismatch(inFileAt: path, length: length) == nil
    }

    @Test("A file comes in several segments through a transport that the program gives")
    func segments() async throws {
        try await withTemporaryDirectory { directory in
            let transport = ContentTransport(length: 16.mebibytes)
            let request = try transport.request(in: directory)
            let result = try await withDownloadClient(transport.configuration) { try await $0.download(request) }
            #expect(Self.isRight(result.path.string, length: 16.mebibytes))
            #expect(result.connectionsPeak == 4 && result.requests == transport.requests.count)
            #expect(result.verifiedBy == .etag)
            let first = try #require(transport.requests.first)
            #expect(first.fields[.range] == "bytes=0-" && first.fields[.acceptEncoding] == "identity")
            #expect(transport.requests.dropFirst().allSatisfy { $0.fields[.range] != nil })
        }
    }

    private struct Unplugged: Error {}

    /// A transport made of a closure.
    private struct ClosureTransport: DownloadTransport {
        let answer: @Sendable (TransportRequest) async throws -> TransportResponse

        func send(_ request: TransportRequest) async throws -> TransportResponse { try await self.answer(request) }
    }

    /// Downloads a file through a closure, once more after a transient failure.
    private static func fetch(
        to path: String, _ change: (inout DownloadRequest) -> Void = { _ in },
        _ answer: @escaping @Sendable (TransportRequest) async throws -> TransportResponse
    ) async throws -> DownloadResult {
        var configuration = DownloadConfiguration()
        configuration.transport = ClosureTransport(answer: answer)
        var request = DownloadRequest(try SourceURL("https://example.org/file.bin"), to: .file(path))
        request.segments = .exactly(1)
        request.retries = 3
        request.retryDelay = .milliseconds(1)
        change(&request)
        return try await withDownloadClient(configuration) { [request] in try await $0.download(request) }
    }

    @Test(
        "What a transport throws becomes the error of the download, after retries if it may be transient",
        arguments: [
            (DownloadError(.tls, "the certificate is wrong"), .tls, false),
            (DownloadError(.auth, "a login is required"), .auth, false),
            (DownloadError(.network, "the line is cut"), .network, true),
            (Unplugged(), .network, true),
            (CancellationError(), .network, true),
        ] as [(any Error, DownloadError.Code, Bool)])
    func failures(error: any Error, code: DownloadError.Code, isRetried: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let requestsCount = Mutex(0)
            let count = { @Sendable () -> Void in requestsCount.withLock { $0 += 1 } }
            do {
                _ = try await Self.fetch(to: directory + "/file.bin") { _ in
                    count()
                    throw error
                }
                Issue.record("the download completed")
            } catch let failure as DownloadError {
                #expect(failure.code == code)
                if error is Unplugged { #expect(failure.message.contains("example.org: Unplugged")) }
            }
            let requests = requestsCount.withLock { $0 }
            #expect((requests > 1) == isRetried)
        }
    }

    @Test("A body that is longer than its Content-Length is an error, and no file")
    func surplus() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/file.bin"
            let outcome = await code {
                try await Self.fetch(to: path) { _ in
                    TransportResponse(
                        status: 200, fields: [.contentLength: "10"], bytes: Array(repeating: 7, count: 11))
                }
            }
            #expect(outcome == .protocol)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test("A body that ends before its Content-Length is requested again from there")
    func truncated() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/file.bin"
            let bytes = OriginContent(seed: 1).bytes(0..<100_000)
            let memory = InMemoryTransport([
                try SourceURL("https://example.org/file.bin"): .init(bytes, fields: [.eTag: "\"1\""])
            ])
            let result = try await Self.fetch(to: path) { request in
                var response = try await memory.send(request)
                if memory.requests.count == 1 {
                    response = TransportResponse(
                        status: response.status, fields: response.fields, bytes: Array(bytes.prefix(30_000)))
                }
                return response
            }
            let starts = memory.requests.map { $0.fields[.range]?.split(separator: "-").first }
            #expect(starts == ["bytes=0", "bytes=30000"])
            #expect(result.bytes == 100_000 && Self.isRight(path, length: 100_000))
        }
    }

    @Test("A body whose sequence ends because its connection was given up is not the end of the file")
    func endedByCancellation() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/file.bin"
            let bytes = OriginContent(seed: 1).bytes(0..<100_000)
            // The sequence ends when its task is cancelled: `AsyncStream` throws nothing then.
            let (silent, continuation) = AsyncStream.makeStream(of: [UInt8].self)
            continuation.yield(Array(bytes.prefix(1000)))
            let isFirst = Atomic(true)
            let takeTurn = { @Sendable () -> Bool in isFirst.exchange(false, ordering: .relaxed) }
            let result = try await Self.fetch(to: path, { $0.stallTimeout = .milliseconds(100) }) { _ in
                takeTurn()
                    ? TransportResponse(status: 200, fields: [.eTag: "\"1\""], body: silent)
                    : TransportResponse(status: 200, fields: [.eTag: "\"1\""], bytes: bytes)
            }
            continuation.finish()
            #expect(result.bytes == 100_000 && Self.isRight(path, length: 100_000))
        }
    }

    @Test("A download through a transport pauses with what it has, and resumes with what is missing")
    func pauses() async throws {
        try await withTemporaryDirectory { directory in
            // While it holds, each response ends in silence after 1 MiB.
            let transport = ContentTransport(length: 16.mebibytes) { transport, offset, start in
                if offset - start >= 1 << 20 { try await transport.holdIfAsked() }
            }
            transport.isHolding = true
            let request = try transport.request(in: directory)
            try await withDownloadClient(transport.configuration) { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    await download.reached(3.mebibytes)
                    let state = await download.pause()
                    #expect(download.state == .paused && (state?.bytesDone ?? 0) >= 3.mebibytes)
                }
            }
            #expect(transport.held.cancelled == transport.held.count)
            transport.isHolding = false
            let before = transport.requests.count
            let result = try await withDownloadClient(transport.configuration) { try await $0.download(request) }
            #expect(Self.isRight(result.path.string, length: 16.mebibytes))
            #expect(result.bytesFetched < 14.mebibytes)
            #expect(transport.requests[before...].allSatisfy { $0.fields[.range].map { $0 != "bytes=0-" } == true })
        }
    }

    @Test("A cancelled download cancels its requests in the transport, and returns when they have ended")
    func cancelled() async throws {
        try await withTemporaryDirectory { directory in
            let transport = ContentTransport(length: 16.mebibytes) { transport, _, _ in
                try await transport.holdIfAsked()
            }
            transport.isHolding = true
            let request = try transport.request(in: directory)
            try await withDownloadClient(transport.configuration) { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    while transport.held.count < 4 { await Task.yield() }
                    await download.cancel(keepingPartial: false)
                    #expect(transport.held.cancelled == transport.held.count)
                }
            }
        }
    }

    @Test("A request without an answer is cancelled in the transport when the task that waits for the download is")
    func cancelledTask() async throws {
        try await withTemporaryDirectory { directory in
            let (asked, asking) = AsyncStream.makeStream(of: Void.self)
            let task = Task {
                await code {
                    try await Self.fetch(to: directory + "/file.bin") { _ in
                        asking.yield()
                        let (never, _) = AsyncStream.makeStream(of: Never.self)
                        for await _ in never {}
                        throw Unplugged()
                    }
                }
            }
            for await _ in asked { break }
            task.cancel()
            #expect(await task.value == .cancelled)
        }
    }

    @Test("Redirects, their limits and what is sent to whom are the same with any transport")
    func redirects() async throws {
        try await withTemporaryDirectory { directory in
            let source = try SourceURL("https://one.example/file.bin")
            let target = try SourceURL("https://two.example/stored")
            let transport = InMemoryTransport([
                source: .init(fields: [.location: target.string], status: 302),
                target: .init([1, 2, 3], fields: [.eTag: "\"1\""]),
            ])
            var configuration = DownloadConfiguration()
            configuration.transport = transport
            var request = DownloadRequest(source, to: .file(directory + "/file.bin"))
            request.fields = [try #require(HTTPField.Name("X-Secret")): "s"]
            let result = try await withDownloadClient(configuration) { [request] in try await $0.download(request) }
            #expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: result.path.string))) == [1, 2, 3])
            let name = try #require(HTTPField.Name("X-Secret"))
            #expect(transport.requests.map(\.url) == [source, target])
            #expect(transport.requests.map { $0.fields[name] } == ["s", nil])

            transport[source] = .init(fields: [.location: "http://two.example/stored"], status: 302)
            request.destination = .file(directory + "/other.bin")
            let refused = await code { [request] in
                try await withDownloadClient(configuration) { try await $0.download(request) }
            }
            #expect(refused == .policy)
        }
    }
}
