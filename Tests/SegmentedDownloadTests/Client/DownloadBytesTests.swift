import Foundation
import Origin
import SegmentedDownload
import Synchronization
import TestSupport
import Testing

/// A file's bytes as a sequence, for programs that pass them on.
@Suite("A file as a sequence of bytes")
struct DownloadBytesTests {
    private struct WrongBytes: Error { let offset: Int64 }

    /// Reads to the end, and compares every byte.
    ///
    /// - Returns: How many bytes came, and the error after them.
    private static func read(_ bytes: DownloadBytes) async throws -> (count: Int64, error: DownloadError?) {
        let content = OriginContent(seed: 1)
        var count: Int64 = 0
        do {
            for try await piece in bytes {
                let end = count + Int64(piece.count)
                guard !piece.isEmpty, piece == content.bytes(count..<end) else { throw WrongBytes(offset: count) }
                count = end
            }
        } catch let error as DownloadError {
            return (count, error)
        }
        return (count, nil)
    }

    @Test("The bytes of a segmented file arrive in order, and nothing is written")
    func inOrder() async throws {
        try await Harness.run { harness in
            let request = try harness.request("/24M/file.bin")
            try await harness.withGroup { group in
                let (length, read) = try await group.withBytes(of: request, window: 4 << 20) { bytes in
                    #expect(group.downloads.map(\.id) == [bytes.download.id] && bytes.download.isStream)
                    return (try await bytes.length(), try await Self.read(bytes))
                }
                #expect(length == 24.mebibytes && read.count == 24.mebibytes && read.error == nil)
                #expect(group.downloads.isEmpty && group.summary.completed == 1)
            }
            #expect(harness.origin.log.snapshot().requests.count > 4)
            #expect(try harness.names().isEmpty)
        }
    }

    @Test(
        "Files of any kind arrive whole: empty, of one byte, without ranges, of unknown length",
        arguments: [
            ("/0/file.bin", 0, 0), ("/1/file.bin", 1, 1), ("/9M/file.bin?ranges=no", 9 << 20, 9 << 20),
            ("/9M/file.bin?ranges=no&length=chunked", nil, 9 << 20),
            ("/9M/file.bin?length=none&ranges=no", nil, 9 << 20),
        ] as [(String, Int64?, Int64)])
    func kinds(resource: String, stated: Int64?, count: Int64) async throws {
        try await Harness.run { harness in
            let request = try harness.request(resource)
            let (length, read) = try await withDownloadClient { client in
                try await client.withBytes(of: request, window: 4 << 20) { bytes in
                    (try await bytes.length(), try await Self.read(bytes))
                }
            }
            #expect(length == stated && read.count == count && read.error == nil)
        }
    }

    @Test("A consumer that takes nothing stops the connections at the window, and gets all once it goes on")
    func backPressure() async throws {
        try await withTemporaryDirectory { directory in
            let transport = ContentTransport(length: 64.mebibytes)
            let request = try transport.request("slow.bin")
            let other = try transport.request("other.bin", in: directory)
            try await withDownloadClient(transport.configuration) { client in
                let count = try await client.withBytes(of: request, window: 4 << 20) { bytes in
                    // Several segments ahead of the consumer, which has taken nothing.
                    while transport.reach(request) < 2.mebibytes { await Task.yield() }
                    // As long as another file of this length takes, the stream would go on if it could.
                    let result = try await client.download(other)
                    #expect(result.bytes == 64.mebibytes)
                    // The window, and a piece for each connection, and that which waits for the consumer.
                    #expect(transport.reach(request) <= 5.mebibytes)
                    let read = try await Self.read(bytes)
                    #expect(read.error == nil)
                    return read.count
                }
                #expect(count == 64.mebibytes)
            }
        }
    }

    @Test("A consumer that stops early ends the download: nothing is fetched after the call")
    func stopsEarly() async throws {
        try await withTemporaryDirectory { directory in
            let transport = ContentTransport(length: 64.mebibytes)
            let request = try transport.request("left.bin")
            let other = try transport.request("other.bin", in: directory)
            try await withDownloadClient(transport.configuration) { client in
                try await client.withGroup { group in
                    let first = try await group.withBytes(of: request, window: 4 << 20) { bytes in
                        for try await piece in bytes { return piece }
                        return []
                    }
                    #expect(!first.isEmpty && group.downloads.isEmpty && group.summary.cancelled == 1)
                    let sent = { transport.requests.filter { $0.url == request.source }.count }
                    let (reach, requests) = (transport.reach(request), sent())
                    #expect(reach < 64.mebibytes)
                    #expect(try await group.add(other).result().bytes == 64.mebibytes)
                    #expect(transport.reach(request) == reach && sent() == requests)
                }
            }
        }
    }

    @Test("A stream that is released before its end ends its download, also one that was never read")
    func released() async throws {
        let transport = ContentTransport(length: 64.mebibytes)
        let request = try transport.request()
        try await withDownloadClient(transport.configuration) { client in
            try await client.withGroup { group in
                let first = try await Self.firstPiece(of: group.stream(request, window: 4 << 20))
                #expect(!first.isEmpty)
                _ = try group.stream(request, window: 4 << 20)
                // Without the releases this would wait for ever: both downloads wait for their consumer.
                let summary = await group.waitForAll()
                #expect(summary.cancelled == 2)
                while !group.downloads.isEmpty { await Task.yield() }
                let bytes = try group.stream(request)
                let read = try await Self.read(bytes)
                #expect(read.count == 64.mebibytes && read.error == nil)
            }
        }
        #expect(transport.reach(request) == 64.mebibytes)
    }

    private static func firstPiece(of bytes: DownloadBytes) async throws -> [UInt8] {
        for try await piece in bytes { return piece }
        return []
    }

    @Test("An error of the consumer is passed on, and ends the download")
    func consumerFails() async throws {
        struct Full: Error {}
        let transport = ContentTransport(length: 64.mebibytes)
        let request = try transport.request()
        try await withDownloadClient(transport.configuration) { client in
            _ = await #expect(throws: Full.self) {
                try await client.withBytes(of: request) { bytes in
                    for try await _ in bytes { throw Full() }
                }
            }
        }
    }

    @Test("A source that fails midway is an error after the bytes that are right, each time they are asked for")
    func failsMidway() async throws {
        let hasRead = Atomic(false)
        let mayFail = { @Sendable () -> Bool in hasRead.load(ordering: .acquiring) }
        let transport = ContentTransport(length: 8.mebibytes) { _, offset, _ in
            guard offset >= 4 << 20 else { return }
            while !mayFail() {
                try Task.checkCancellation()
                await Task.yield()
            }
            throw DownloadError(.auth, "the session has ended")
        }
        var request = try transport.request()
        request.segments = .exactly(1)
        try await withDownloadClient(transport.configuration) { [request] client in
            try await client.withBytes(of: request) { bytes in
                var iterator = bytes.makeAsyncIterator()
                let first = try await iterator.next()
                #expect(first == OriginContent(seed: 1).bytes(0..<Int64(first?.count ?? 1)))
                hasRead.store(true, ordering: .releasing)
                var count = Int64(first?.count ?? 0)
                let error = await #expect(throws: DownloadError.self) {
                    for try await piece in bytes {
                        let end = count + Int64(piece.count)
                        guard piece == OriginContent(seed: 1).bytes(count..<end) else {
                            throw WrongBytes(offset: count)
                        }
                        count = end
                    }
                }
                #expect(error?.code == .auth && count <= 4.mebibytes)
                #expect(try await Self.read(bytes).error == error)
            }
        }
    }

    @Test("A file that does not match its digest is an error after its last byte, never an end")
    func digest() async throws {
        try await Harness.run { harness in
            let digest = try #require(ExpectedDigest("sha256=" + String(repeating: "0", count: 64)))
            let request = try harness.request("/8M/file.bin") { $0.digests = [digest] }
            let read = try await withDownloadClient { client in
                try await client.withBytes(of: request) { try await Self.read($0) }
            }
            #expect(read.count == 8.mebibytes && read.error?.code == .integrity)
        }
    }

    @Test("A file that cannot be fetched is an error before the first byte, with its status")
    func notFound() async throws {
        try await Harness.run { harness in
            let request = try harness.request("/1M/file.bin?fail=404:all")
            let error = await #expect(throws: DownloadError.self) {
                try await withDownloadClient { client in
                    try await client.withBytes(of: request) { try await $0.length() }
                }
            }
            #expect(error?.code == .server && error?.status == 404)
        }
    }

    @Test("A consumer whose task is cancelled ends with an error, and the requests of the transport are cancelled")
    func cancelled() async throws {
        let transport = ContentTransport(length: 64.mebibytes) { transport, offset, _ in
            if offset >= 1 << 20 { try await transport.holdIfAsked() }
        }
        transport.isHolding = true
        let request = try transport.request()
        let task = Task {
            await code {
                try await withDownloadClient(transport.configuration) { client in
                    try await client.withBytes(of: request) { bytes in
                        for try await _ in bytes {}
                    }
                }
            }
        }
        while transport.held.count == 0 { await Task.yield() }
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(transport.held.cancelled == transport.held.count)
    }

    @Test("A pause ends the sequence with an error, because it cannot be resumed")
    func paused() async throws {
        let transport = ContentTransport(length: 64.mebibytes) { transport, offset, _ in
            if offset >= 1 << 20 { try await transport.holdIfAsked() }
        }
        transport.isHolding = true
        let request = try transport.request()
        try await withDownloadClient(transport.configuration) { client in
            try await client.withGroup { group in
                try await group.withBytes(of: request) { bytes in
                    while transport.held.count == 0 { await Task.yield() }
                    let state = await bytes.download.pause()
                    let read = try await Self.read(bytes)
                    #expect(state == nil && read.error?.code == .cancelled)
                }
                #expect(group.downloads.isEmpty)
            }
        }
    }

    @Test("Consumers of one URL each get all of it, and an id in use is refused")
    func several() async throws {
        let transport = ContentTransport(length: 3.mebibytes)
        let request = try transport.request()
        try await withDownloadClient(transport.configuration) { client in
            try await client.withGroup { group in
                var named = request
                named.id = "one"
                try await group.withBytes(of: named) { [named] one in
                    let refused = await code { try await group.withBytes(of: named) { _ in } }
                    #expect(refused == .usage)
                    let file = await code { _ = try group.add(named) }
                    #expect(file == .usage)
                    let counts = try await group.withBytes(of: request) { two in
                        #expect(group.downloads.count == 2)
                        return [try await Self.read(two).count, try await Self.read(one).count]
                    }
                    #expect(counts == [3.mebibytes, 3.mebibytes])
                }
            }
        }
    }

    @Test("A file can be downloaded with the request of a stream, to a file of its own")
    func again() async throws {
        try await withTemporaryDirectory { directory in
            let transport = ContentTransport(length: 1.mebibytes)
            let request = try transport.request()
            try await withDownloadClient(transport.configuration) { client in
                try await client.withGroup { group in
                    var used = try await group.withBytes(of: request) { bytes in
                        let read = try await Self.read(bytes)
                        #expect(read.error == nil)
                        return bytes.download.request
                    }
                    used.destination = .file(directory + "/file.bin")
                    let result = try await group.add(used).result()
                    #expect(
                        OriginContent(seed: 1).firstMismatch(inFileAt: result.path.string, length: 1.mebibytes) == nil)
                }
            }
        }
    }
}
