import SegmentedDownloadCore
import Synchronization
import Testing

@testable import SegmentedDownload

/// The hand-over of a file's bytes to a consumer in this process.
@Suite("A stream of bytes")
struct ByteStreamTests {
    private static let length = ByteStream.pieceLengthMax * 2 + 1

    private static var bytes: [UInt8] { (0..<Self.length).map { UInt8(truncatingIfNeeded: $0 / 3) } }

    /// Writes all bytes, in one call.
    private static func write(to stream: ByteStream, while isWanted: @Sendable () -> Bool = { true }) async throws {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.length, alignment: 16)
        defer { copy.deallocate() }
        copy.copyBytes(from: Self.bytes)
        try await stream.write(UnsafeRawBufferPointer(copy), while: isWanted)
    }

    private static let completed = DownloadEvent.completed(
        DownloadResult(
            reported: "", bytes: Int64(Self.length), bytesFetched: Int64(Self.length), requests: 1, connectionsPeak: 1,
            duration: .zero, crc32: nil, digests: [], verifiedBy: .none, wasAlreadyComplete: false))

    @Test("Pieces arrive in order and none is lost, however often a waiting write is woken")
    func order() async throws {
        let stream = ByteStream()
        async let writing: Void = Self.write(to: stream)
        var received: [UInt8] = []
        for _ in 0..<3 {
            try await stream.waitForBeginning()
            for _ in 0..<100 {
                stream.wake()
                await Task.yield()
            }
            let piece = try #require(try await stream.next())
            #expect(piece.count <= ByteStream.pieceLengthMax)
            received += piece
        }
        try await writing
        stream.end(with: Self.completed)
        #expect(try await stream.next() == nil)
        #expect(received == Self.bytes && stream.hasWritten && !stream.isActive)
    }

    @Test("A write that waits for the consumer ends once it is not wanted any more, or its task is cancelled")
    func interrupted() async throws {
        let stream = ByteStream()
        let isClosed = Latch()
        let writing = Task { await failureCode { try await Self.write(to: stream) { !isClosed.isRaised } } }
        try await stream.waitForBeginning()
        isClosed.raise()
        stream.wake()
        #expect(await writing.value == .cancelled)

        let other = ByteStream()
        let cancelled = Task { await failureCode { try await Self.write(to: other) } }
        try await other.waitForBeginning()
        cancelled.cancel()
        #expect(await cancelled.value == .cancelled)
    }

    @Test("A piece that was written before a failure is delivered before it, and the failure each time after it")
    func failed() async throws {
        let stream = ByteStream()
        let writing = Task { await failureCode { try await Self.write(to: stream) } }
        try await stream.waitForBeginning()
        stream.end(with: .failed(DownloadError(.network, "the line is cut"), DownloadProgress()))
        // What comes later does not hide the failure.
        stream.end(with: .cancelled)
        #expect(await writing.value == .cancelled)
        #expect(try await stream.next() == Array(Self.bytes.prefix(ByteStream.pieceLengthMax)))
        for _ in 0..<2 {
            let error = await code { try await stream.next() }
            #expect(error == .network)
        }
        await stream.waitUntilEnded()
    }

    @Test("A consumer whose task is cancelled gets an error, not the end of the file")
    func cancelledConsumer() async throws {
        let stream = ByteStream()
        let reading = Task { await code { try await stream.next() } }
        reading.cancel()
        #expect(await reading.value == .cancelled)
        let beginning = Task { await code { try await stream.waitForBeginning() } }
        beginning.cancel()
        #expect(await beginning.value == .cancelled)
    }
}
