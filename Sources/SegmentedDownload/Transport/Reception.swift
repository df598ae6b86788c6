import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Synchronization

/// The response to one request: received on an event loop, and read by one task.
///
/// While the task writes a chunk, more is received: until 64 KiB wait, or one longer chunk; less if the memory is limited.
///
/// The client's delegate interface is used, because its asynchronous one wakes a thread of the global executor for every
/// request and two continuations for every chunk.
final class Reception: HTTPClientResponseDelegate {
    typealias Response = Void

    private struct State {
        var task: HTTPClient.Task<Void>?
        var headReader: CheckedContinuation<HTTPResponseHead, any Error>?
        /// The chunks that the task has not taken.
        var chunks: CircularBuffer<ByteBuffer> = CircularBuffer(initialCapacity: 2)
        /// The length of these chunks.
        var length = 0
        /// Whether the last chunk is a copy, to which more can be added.
        var isLastCopied = false
        /// Reading from the socket resumes when this succeeds.
        var taken: EventLoopPromise<Void>?
        var chunkReader: CheckedContinuation<ByteBuffer?, any Error>?
        var end: Result<Void, any Error>?
        var isCancelled = false

        mutating func takeChunk() -> ByteBuffer? {
            guard let chunk = self.chunks.popFirst() else { return nil }
            self.length -= chunk.readableBytes
            if self.chunks.isEmpty { self.isLastCopied = false }
            return chunk
        }

        /// Adds a chunk. Short ones are copied together: each would keep all of the receive buffer that it is a part of.
        ///
        /// - Parameter lengthShort: The length from which a chunk is not short.
        mutating func add(_ chunk: ByteBuffer, lengthShort: Int) {
            self.length += chunk.readableBytes
            guard chunk.readableBytes < lengthShort else {
                self.chunks.append(chunk)
                self.isLastCopied = false
                return
            }
            if !self.isLastCopied { self.chunks.append(ByteBuffer()) }
            self.isLastCopied = true
            self.chunks[self.chunks.index(before: self.chunks.endIndex)].writeImmutableBuffer(chunk)
        }
    }

    /// 64 KiB: reading stops when this much waits. Pieces of a body in chunked coding may be short.
    private static let lengthTogether = 64 << 10

    /// The greatest length of a receive buffer at present.
    private let lengthAllowed: @Sendable () -> Int
    private let state = Mutex(State())

    init(lengthAllowed: @escaping @Sendable () -> Int) {
        self.lengthAllowed = lengthAllowed
    }

    // MARK: The reading task's side

    /// Sends the request and waits for the head of the response.
    ///
    /// - Parameter loop: The event loop for a new connection.
    /// - Throws: The client's error, or `HTTPClientError.cancelled` if the task is cancelled.
    func head(
        of request: HTTPClient.Request, from client: HTTPClient, on loop: HTTPClient.EventLoopPreference
    ) async throws -> HTTPResponseHead {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { reader in
                self.state.withLock { $0.headReader = reader }
                let task = client.execute(request: request, delegate: self, eventLoop: loop)
                let isCancelled = self.state.withLock { state in
                    // A request that has ended already needs no cancellation.
                    if state.end == nil { state.task = task }
                    return state.isCancelled
                }
                if isCancelled { task.cancel() }
                // A client that is shutting down fails the task without calling the delegate.
                task.futureResult.whenFailure { self.end(with: .failure($0)) }
            }
        } onCancel: {
            self.cancel()
        }
    }

    /// The next chunk; `nil` after the end of a complete body.
    func next() async throws -> ByteBuffer? {
        try Task.checkCancellation()
        if let chunk = self.takeChunk() { return chunk }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { reader in
                let answer = self.state.withLock { state -> Result<ByteBuffer?, any Error>? in
                    if let chunk = state.takeChunk() { return .success(chunk) }
                    if let end = state.end { return end.map { nil } }
                    state.chunkReader = reader
                    return nil
                }
                if let answer {
                    self.askForMore()
                    reader.resume(with: answer)
                }
            }
        } onCancel: {
            self.cancel()
        }
    }

    private func takeChunk() -> ByteBuffer? {
        guard let chunk = self.state.withLock({ $0.takeChunk() }) else { return nil }
        self.askForMore()
        return chunk
    }

    /// Resumes reading once every received chunk was taken.
    private func askForMore() {
        self.state.withLock { state in state.chunks.isEmpty ? state.taken.take() : nil }?.succeed()
    }

    /// Gives up the rest of the response, and closes the connection if there is one.
    func finish() {
        self.cancel()
        self.state.withLock { state in
            (state.chunks, state.length) = ([], 0)
            return state.taken.take()
        }?.succeed()
    }

    private func cancel() {
        let task = self.state.withLock { state in
            state.isCancelled = true
            return state.task.take()
        }
        task?.cancel()
    }

    // MARK: The event loop's side

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        self.state.withLock { $0.headReader.take() }?.resume(returning: head)
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ chunk: ByteBuffer) -> EventLoopFuture<Void> {
        let lengthMax = min(Self.lengthTogether, self.lengthAllowed())
        let (reader, taken) = self.state.withLock { state in
            if let reader = state.chunkReader.take() { return (Optional(reader), EventLoopFuture<Void>?.none) }
            guard !state.isCancelled else { return (nil, nil) }
            // So at most one longer chunk waits, with its receive buffer.
            state.add(chunk, lengthShort: lengthMax / 2)
            guard state.length >= lengthMax else { return (nil, nil) }
            let taken = task.eventLoop.makePromise(of: Void.self)
            state.taken = taken
            return (nil, taken.futureResult)
        }
        reader?.resume(returning: chunk)
        return taken ?? task.eventLoop.makeSucceededVoidFuture()
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) { self.end(with: .success(())) }

    func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) { self.end(with: .failure(error)) }

    private func end(with result: Result<Void, any Error>) {
        let (headReader, chunkReader, taken) = self.state.withLock { state in
            state.end = state.end ?? result
            state.task = nil
            return (state.headReader.take(), state.chunkReader.take(), state.taken.take())
        }
        taken?.succeed()
        switch result {
        case .success:
            headReader?.resume(throwing: HTTPClientError.remoteConnectionClosed)
            chunkReader?.resume(returning: nil)
        case .failure(let error):
            headReader?.resume(throwing: error)
            chunkReader?.resume(throwing: error)
        }
    }
}
