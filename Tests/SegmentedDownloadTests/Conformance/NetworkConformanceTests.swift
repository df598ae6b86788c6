import HTTPTypes
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

@Suite("What every transport does with a request")
struct NetworkConformanceTests {
    @Test(
        "A body comes in pieces that are never empty, and each piece stays valid while later ones are read",
        arguments: NetworkDoor.Kind.allCases)
    func pieces(kind: NetworkDoor.Kind) async throws {
        try await NetworkDoor.run(kind, length: 3 << 20) { door in
            let pieces = try await door.transport.withResponse(to: door.request()) { _, body in
                try await body.rest()
            }
            let lengths = pieces.map(\.count)
            #expect(lengths.count > 1 && !lengths.contains(0))
            #expect(pieces.joined == door.content)
        }
    }

    @Test("An empty body ends at once", arguments: NetworkDoor.Kind.allCases)
    func empty(kind: NetworkDoor.Kind) async throws {
        try await NetworkDoor.run(kind, length: 0) { door in
            let (head, bytes) = try await door.fetch()
            #expect(head.status == 200 && head.fields[.contentLength] == "0" && bytes.isEmpty)
        }
    }

    // MARK: Fields

    @Test(
        "The fields of a request reach the server, and those of its answer the caller",
        arguments: NetworkDoor.Kind.allCases)
    func fields(kind: NetworkDoor.Kind) async throws {
        try await NetworkDoor.run(kind) { door in
            let (whole, _) = try await door.fetch()
            #expect(whole.status == 200 && whole.fields[.contentLength] == "\(door.content.count)")
            let tag = try #require(whole.fields[.eTag])
            let (part, bytes) = try await door.fetch([.range: "bytes=10-19", .ifRange: tag])
            #expect(part.status == 206 && part.fields[.eTag] == tag && part.fields[.contentLength] == "10")
            #expect(part.fields[.contentRange] == "bytes 10-19/\(door.content.count)")
            #expect(bytes == Array(door.content[10..<20]))
            let (rest, end) = try await door.fetch([.range: "bytes=99990-"])
            #expect(rest.status == 206 && end == Array(door.content[99_990...]))
            let (other, all) = try await door.fetch([.range: "bytes=10-19", .ifRange: "\"another\""])
            #expect(other.status == 200 && other.fields[.contentRange] == nil && all == door.content)
        }
    }

    @Test("Answers without bytes of the file are heads like others", arguments: NetworkDoor.Kind.allCases)
    func heads(kind: NetworkDoor.Kind) async throws {
        try await NetworkDoor.run(kind) { door in
            let (whole, _) = try await door.fetch()
            let tag = try #require(whole.fields[.eTag])
            let (same, nothing) = try await door.fetch([.ifNoneMatch: tag])
            #expect(same.status == 304 && same.fields[.eTag] == tag && nothing.isEmpty)
            let (behind, _) = try await door.fetch([.range: "bytes=\(door.content.count)-"])
            #expect(behind.status == 416 && behind.fields[.contentRange] == "bytes */\(door.content.count)")
        }
    }

    @Test("A redirect is an answer, and is not followed", arguments: NetworkDoor.Kind.allCases)
    func redirect(kind: NetworkDoor.Kind) async throws {
        try await NetworkDoor.run(kind, .redirecting) { door in
            let (head, bytes) = try await door.fetch()
            #expect(head.status == 302 && head.fields[.location]?.isEmpty == false && bytes != door.content)
        }
    }

    // MARK: Leaving early

    @Test(
        "A caller may leave after the head or within the body, and the next request has an answer of its own",
        arguments: NetworkDoor.Kind.allCases, [0, 1])
    func early(kind: NetworkDoor.Kind, pieces: Int) async throws {
        try await NetworkDoor.run(kind, length: 4 << 20) { door in
            let status = try await door.transport.withResponse(to: door.request()) { head, body in
                for _ in 0..<pieces { _ = try await body.next() }
                return head.status
            }
            #expect(status == 200)
            let bytes = try await door.fetch().bytes
            #expect(bytes == door.content)
        }
    }

    @Test("An error of the caller is passed on as it is", arguments: NetworkDoor.Kind.allCases)
    func callersError(kind: NetworkDoor.Kind) async throws {
        struct Own: Error, Equatable { var number = 7 }
        try await NetworkDoor.run(kind) { door in
            let error = await Self.error {
                try await door.transport.withResponse(to: door.request()) { _, body in
                    _ = try await body.next()
                    throw Own()
                }
            }
            #expect(error as? Own == Own())
        }
    }

    @Test("Two bodies are read side by side", arguments: NetworkDoor.Kind.allCases)
    func sideBySide(kind: NetworkDoor.Kind) async throws {
        try await NetworkDoor.run(kind, length: 1 << 20) { door in
            let (one, other) = try await door.transport.withResponse(to: door.request()) { _, body in
                let first = try await body.next()
                let other = try await door.fetch([.range: "bytes=5-99999"]).bytes
                let rest = try await body.rest()
                return ([first].compactMap { $0 } + rest, other)
            }
            #expect(one.joined == door.content && other == Array(door.content[5..<100_000]))
        }
    }

    // MARK: Limits

    @Test(
        "No piece is longer than the memory that a connection may use, and a body is complete with any limit",
        arguments: NetworkDoor.Kind.allCases)
    func limits(kind: NetworkDoor.Kind) async throws {
        try await NetworkDoor.run(kind, length: 2 << 20) { door in
            let owner = ObjectIdentifier(NetworkConformanceTests.self)
            let limit = 128 << 10
            door.transport.limit(ReceiveLimits(memory: limit), for: owner)
            let pieces = try await door.transport.withResponse(to: door.request()) { _, body in
                try await body.rest()
            }
            let longest = pieces.map(\.count).max() ?? 0
            #expect((1...limit).contains(longest))
            #expect(pieces.joined == door.content)
            door.transport.limit(nil, for: owner)
            let bytes = try await door.fetch().bytes
            #expect(bytes == door.content)
        }
    }

    // MARK: Failures

    @Test(
        "A connection that is refused, reset or closed too early is a transient failure, never an end of the body",
        arguments: NetworkDoor.Kind.allCases, [NetworkDoor.Server.refusing, .resetting, .truncating])
    func broken(kind: NetworkDoor.Kind, server: NetworkDoor.Server) async throws {
        try await NetworkDoor.run(kind, server) { door in
            // A second request fails in the same way, and not because the transport is unusable.
            for _ in 0..<2 {
                var found: (any Error)?
                do {
                    _ = try await door.fetch()
                } catch {
                    found = error
                }
                let failure = try #require(found as? DownloadError)
                #expect(failure.code == .network && failure.isTransient && !failure.message.isEmpty)
            }
        }
    }

    // MARK: Cancellation

    @Test(
        "A cancelled task gets a CancellationError while it waits for the head or for more of the body",
        arguments: NetworkDoor.Kind.allCases, [NetworkDoor.Server.silent, .stalling])
    func cancelled(kind: NetworkDoor.Kind, server: NetworkDoor.Server) async throws {
        try await NetworkDoor.run(kind, server) { door in
            let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
            let error = await withTaskGroup(of: (any Error)?.self) { group in
                group.addTask {
                    defer { arrival.finish() }
                    if server == .silent { arrival.yield() }
                    return await Self.error {
                        try await door.transport.withResponse(to: door.request()) { _, body in
                            arrival.yield()
                            _ = try await body.rest()
                        }
                    }
                }
                for await _ in arrivals { break }
                group.cancelAll()
                return await group.next() ?? nil
            }
            #expect(error is CancellationError, "\(String(describing: error))")
        }
    }

    @Test("A task that was cancelled before gets no answer", arguments: NetworkDoor.Kind.allCases)
    func cancelledBefore(kind: NetworkDoor.Kind) async throws {
        try await NetworkDoor.run(kind) { door in
            let error = await withTaskGroup(of: (any Error)?.self) { group in
                group.cancelAll()
                group.addTask { await Self.error { try await door.fetch() } }
                return await group.next() ?? nil
            }
            #expect(error is CancellationError, "\(String(describing: error))")
        }
    }

    @Test(
        "A task that is cancelled within a body that is not complete gets no end of it",
        arguments: NetworkDoor.Kind.allCases)
    func cancelledWithin(kind: NetworkDoor.Kind) async throws {
        try await NetworkDoor.run(kind, .stalling) { door in
            let error = await withTaskGroup(of: (any Error)?.self) { group in
                group.addTask {
                    await Self.error {
                        try await door.transport.withResponse(to: door.request()) { _, body in
                            withUnsafeCurrentTask { $0?.cancel() }
                            _ = try await body.rest()
                        }
                    }
                }
                return await group.next() ?? nil
            }
            #expect(error is CancellationError, "\(String(describing: error))")
        }
    }

    /// The error that `body` throws.
    private static func error(of body: () async throws -> some Any) async -> (any Error)? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error
        }
    }
}
