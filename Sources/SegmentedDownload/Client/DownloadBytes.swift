import SegmentedDownloadCore

/// A file's bytes in order, which arrive while segments are fetched in parallel. Nothing is written to disk.
///
/// ``DownloadGroup/stream(_:window:)`` and ``DownloadGroup/withBytes(of:window:_:)`` make the sequence. It ends with
/// `nil` only after the whole file has arrived and matches its length and digests. Otherwise it throws a
/// ``DownloadError`` after the bytes that preceded the failure, every time the next piece is requested. In a cancelled
/// task it throws one with code `cancelled`.
///
/// Iterate it once. Several iterators share the pieces. The download is cancelled when the sequence and its iterators
/// are released before its end.
public struct DownloadBytes: AsyncSequence, Sendable {
    /// Cancels the download when the consumer has released it.
    fileprivate final class Hold: Sendable {
        let download: Download
        let stream: ByteStream

        init(_ download: Download, _ stream: ByteStream) {
            self.download = download
            self.stream = stream
        }

        deinit {
            self.cancel()
        }

        func cancel() {
            guard self.stream.isActive else { return }
            self.download.engine.post(.event(self.download.job.id, .cancel(keepingPartial: false)))
        }
    }

    /// Delivers the pieces.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let hold: Hold

        /// The next piece, never empty, of at most 256 KiB.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(DownloadError) -> [UInt8]? {
            try await self.hold.stream.next()
        }
    }

    fileprivate let hold: Hold

    /// The download that fetches the bytes, for its progress and its controls. It cannot be paused and resumed: a pause
    /// ends the sequence with code `cancelled`.
    public var download: Download { self.hold.download }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(hold: self.hold) }

    /// The complete length in bytes; `nil` if the server does not state it. Waits for the download's turn among the
    /// group's ``DownloadLimits/downloads``, and then until the first bytes have arrived.
    ///
    /// A request handler can answer with this length, or with an error if there are no bytes, before it sends the first
    /// piece.
    ///
    /// - Throws: The ``DownloadError`` with which the download ended before its first byte; code `cancelled` if the task
    ///   is cancelled.
    public func length() async throws(DownloadError) -> Int64? {
        try await self.hold.stream.waitForBeginning()
        return self.download.job.lengthStated
    }
}

extension DownloadGroup {
    /// 4 MiB: less would be used up by the pieces of single reads.
    private static let windowLeast: Int64 = 4 << 20

    /// Begins to fetch a file, and returns its bytes as a sequence.
    ///
    /// ```swift
    /// for try await piece in try group.stream(DownloadRequest(source)) { try await connection.send(piece) }
    /// ```
    ///
    /// If the consumer is slower than the network, the connections wait. The download counts among the group's
    /// downloads and waits for its turn like others. It leaves their list when it has ended.
    ///
    /// Release the sequence before the group's body returns: a group ends only when its downloads have ended, and this one
    /// waits for its consumer.
    ///
    /// Bytes that were delivered cannot be retracted. So once the first have arrived, only one source is used, and a
    /// file that changes meanwhile is an error.
    ///
    /// - Parameters:
    ///   - request: What to fetch. Its destination is not used; ``Download/request`` has `descriptor(-1)` instead.
    ///   - window: How many bytes are fetched ahead of the consumer at most; at least 4 MiB. In smaller windows fewer
    ///     connections are useful.
    /// - Throws: The same errors as ``add(_:)``, with code `usage` also if another download of the group has the
    ///   request's id.
    public func stream(
        _ request: DownloadRequest, window: Int64 = 48 << 20
    ) throws(DownloadError) -> DownloadBytes {
        let stream = ByteStream()
        var request = request
        request.destination = .descriptor(-1)
        // No directory is looked for.
        request.createsDirectories = true
        request.windowLength = max(window, Self.windowLeast)
        let download = try self.add(request, restingAt: nil, stream: stream)
        return DownloadBytes(hold: DownloadBytes.Hold(download, stream))
    }

    /// Runs `body` with the bytes of a file, as ``stream(_:window:)`` returns them, and returns when `body` has returned
    /// and the download has ended.
    ///
    /// If `body` returns before the end of the file, the download is cancelled.
    ///
    /// - Throws: The same errors as ``stream(_:window:)``, and any error that `body` throws.
    public func withBytes<Answer: Sendable>(
        of request: DownloadRequest, window: Int64 = 48 << 20, _ body: (DownloadBytes) async throws -> Answer
    ) async throws -> Answer {
        let bytes = try self.stream(request, window: window)
        let answer: Result<Answer, any Error>
        do {
            answer = .success(try await body(bytes))
        } catch {
            answer = .failure(error)
        }
        bytes.hold.cancel()
        await bytes.hold.stream.waitUntilEnded()
        return try answer.get()
    }
}

extension DownloadClient {
    /// Runs `body` with the bytes of a file, in a group of its own.
    ///
    /// - Throws: The same errors as ``DownloadGroup/withBytes(of:window:_:)``.
    public func withBytes<Answer: Sendable>(
        of request: DownloadRequest, window: Int64 = 48 << 20, _ body: (DownloadBytes) async throws -> Answer
    ) async throws -> Answer {
        try await self.withGroup { group in try await group.withBytes(of: request, window: window, body) }
    }
}
