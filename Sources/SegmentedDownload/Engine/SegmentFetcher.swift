import HTTPTypes
package import SegmentedDownloadCore

/// Fetches one lease: sends the request, waits for the verdict on the response, writes the body, and returns how it
/// ended.
///
/// It makes no decisions. The engine decides on every response head before a byte is written, and whenever the limit is
/// reached.
package struct SegmentFetcher: Sendable {
    /// A question that the engine answers through the lease.
    package enum Question: Sendable {
        case responded(RangeResponse, suggestedName: String?)
        case limitReached
    }

    let lease: SegmentLease
    let follower: RedirectFollower
    /// The part file; `nil` until the engine has prepared it.
    let part: @Sendable () -> PartialFile?
    let suggestName: @Sendable (ResponseHead) -> String?
    /// Records the digests of the whole file that an accepted response states: in its head before one of its bytes is written, and
    /// in its trailers.
    let noteStated: @Sendable ([ExpectedDigest]) throws -> Void
    let ask: @Sendable (Question) -> Void
    /// Where the fetch waits if bytes arrive faster than the rate limits allow.
    let pass: RatePass
    let threads: EngineThreads

    /// Runs until the lease is over. If the lease is revoked, its connection is closed at once, and the current task stays
    /// cancelled.
    package func run() async -> LeaseEnd {
        await self.lease.withRevocation { await self.fetch() }
    }

    private func fetch() async -> LeaseEnd {
        do {
            if let offset = self.lease.order.forgetsFrom {
                try self.part()?.forget(from: offset)
            }
            return try await self.follower.withResponse(
                to: self.lease.order.request, isBroken: { self.lease.isFaulted || !Task.isCancelled }
            ) { head, response, announced, body in
                self.ask(.responded(response, suggestedName: self.suggestName(head)))
                guard case .proceed = await self.lease.awaitAnswer() else { return .stopped }
                if let stated = response.resource?.digests, !stated.isEmpty { try self.noteStated(stated) }
                let isChecked = !self.lease.order.ignoresContentDigests
                let awaitsTrailers = isChecked && AnnouncedDigests.follow(head)
                let check =
                    isChecked && announced.content != nil || awaitsTrailers
                    ? ContentCheck(announced.content, awaitsTrailers: awaitsTrailers, of: response) : nil
                return try await self.write(body, of: response, check, awaitsTrailers: awaitsTrailers)
            }
        } catch let failure as DownloadError {
            return self.lease.isRevoked ? .revoked : .failed(failure)
        } catch let error as StorageError {
            return .storageFailed(error.failure)
        } catch is CancellationError {
            return .revoked
        } catch {
            return .failed(DownloadError(.internal, "unexpected: \("\(error)".printable)"))
        }
    }

    /// How far the body of a response was written. Used by one thread at a time.
    private final class Progress {
        var writer: SegmentWriter
        var check: ContentCheck?
        /// The offset in the file of the next chunk.
        var offset: Int64
        /// A chunk that was received but not processed.
        var chunk: (any BodyChunk)?
        /// Whether the end of the body was received.
        var hasEnded = false
        /// Whether the end is awaited before the last byte is written, because the file is not complete without the digest that
        /// the trailers will state. Only one byte waits: a free connection would take more over.
        let awaitsTrailers: Bool
        /// How the copying ended; `nil` if it did not.
        var result: Result<LeaseEnd, any Error>?

        init(_ writer: SegmentWriter, _ check: ContentCheck?, from offset: Int64, awaitsTrailers: Bool) {
            (self.writer, self.check, self.offset, self.awaitsTrailers) = (writer, check, offset, awaitsTrailers)
        }
    }

    /// Writes the body: to a part in memory on the present thread, and to a file on the one for blocking calls.
    ///
    /// - Parameter check: Verifies the body, if the response's head states a digest for it, or that one follows.
    private func write(
        _ body: any ResponseBody, of response: RangeResponse, _ check: ContentCheck?, awaitsTrailers: Bool
    ) async throws -> LeaseEnd {
        guard let part = self.part() else {
            return .failed(DownloadError(.internal, "a body was accepted before the part file was created"))
        }
        // If the body has a digest, its bytes are claimed only after they were verified.
        let writer = SegmentWriter(
            part: part, from: self.lease.position, mark: self.lease.order.mark,
            holdsClaims: check != nil && part.mayHold(response))
        // Neither is used by two threads at once.
        nonisolated(unsafe) let body = body
        nonisolated(unsafe) let progress = Progress(
            writer, check, from: response.bodyStart, awaitsTrailers: awaitsTrailers)
        if part.memory != nil { await self.copy(body, of: response, to: part, progress) { part.memory != nil } }
        if part.memory != nil, let result = progress.result {
            return try await self.finish(result, progress, body, of: response)
        }
        return try await self.threads.run(.fetching(self.pass.download)) {
            if progress.result == nil { await self.copy(body, of: response, to: part, progress) { true } }
            guard let result = progress.result else { preconditionFailure("copying ends with a result") }
            return try await self.finish(result, progress, body, of: response)
        }
    }

    /// Claims what was written, and returns how the lease has ended.
    private func finish(
        _ result: Result<LeaseEnd, any Error>, _ progress: Progress, _ body: any ResponseBody,
        of response: RangeResponse
    ) async throws -> LeaseEnd {
        var stated: (whole: [ExpectedDigest], content: StatedDigest?) = ([], nil)
        if case .success(.finished) = result {
            progress.check?.hasEnded = true
            stated = self.stated(by: body.trailers, of: response, progress)
        }
        // Bytes that differ from the disk were not written, and the difference is the more specific result.
        if case .success(.differs) = result { progress.check = nil }
        if let failure = progress.check?.failure { return .corrupt(failure) }
        // Of bytes that were only compared nothing is on disk.
        if !self.lease.order.isSample, !self.lease.order.ignoresContentDigests {
            try self.part()?.state([progress.check?.open, stated.content].compactMap(\.self))
        }
        if !stated.whole.isEmpty { try self.noteStated(stated.whole) }
        // Bytes that were written are claimed even after an error, so that they are not fetched again.
        try progress.writer.finish()
        return try result.get()
    }

    /// The digests of the whole file that follow a body, and that of the body if it was not computed. The file is compared with
    /// it when it is complete. Others are added to the body's check.
    private func stated(
        by trailers: HTTPFields, of response: RangeResponse, _ progress: Progress
    ) -> (whole: [ExpectedDigest], content: StatedDigest?) {
        let (representation, content) = AnnouncedDigests.trailing(trailers)
        let isChecked = content.map { progress.check?.add($0) ?? false } ?? true
        let open = isChecked ? nil : content
        guard response.hasAllBytes else {
            return (representation, open.flatMap { digest in response.bodyRange.map { StatedDigest(digest, of: $0) } })
        }
        for digest in representation { _ = progress.check?.add(digest) }
        // A digest of the body that was not computed is one of the file, too.
        return (representation + [open].compactMap(\.self), nil)
    }

    /// Copies the body as long as `isWanted`, and notes the result if that ends it.
    private func copy(
        _ body: any ResponseBody, of response: RangeResponse, to part: PartialFile, _ progress: Progress,
        while isWanted: () -> Bool
    ) async {
        do {
            if let end = try await self.copied(body, of: response, to: part, progress, while: isWanted) {
                progress.result = .success(end)
            }
        } catch {
            progress.result = .failure(error)
        }
    }

    /// - Returns: `nil` if `isWanted` has become false.
    private func copied(
        _ body: any ResponseBody, of response: RangeResponse, to part: PartialFile, _ progress: Progress,
        while isWanted: () -> Bool
    ) async throws -> LeaseEnd? {
        let compares = !part.isSame(asProvedBy: response)
        while true {
            if progress.chunk == nil, !progress.hasEnded { progress.chunk = try await body.next() }
            guard var chunk = progress.chunk else { return .finished }
            guard isWanted() else { return nil }
            progress.chunk = nil
            let offset = progress.offset
            if progress.awaitsTrailers, let bodyEnd = response.bodyEnd, offset + Int64(chunk.count) >= bodyEnd,
                !progress.hasEnded
            {
                if chunk.count > 1 {
                    progress.chunk = ChunkPart(chunk, chunk.count - 1..<chunk.count)
                    chunk = ChunkPart(chunk, 0..<chunk.count - 1)
                } else {
                    progress.chunk = try await body.next()
                    progress.hasEnded = progress.chunk == nil
                }
            }
            self.lease.received(chunk.count)
            if progress.check != nil { chunk.withBytes { progress.check?.update($0) } }
            var taken = 0
            // Bytes before the writing position are on disk already and must agree. Those from `writesFrom` on are not
            // compared: another connection has fetched them since this request was sent, and may be writing them now.
            if offset < progress.writer.position {
                taken = Int(min(Int64(chunk.count), progress.writer.position - offset))
                let compared = compares ? Int(min(Int64(taken), max(self.lease.order.writesFrom - offset, 0))) : 0
                let difference = try chunk.withBytes {
                    guard compared > 0 else { return SegmentWriter.Difference?.none }
                    return try progress.writer.firstDifference(
                        UnsafeRawBufferPointer(rebasing: $0[..<compared]), at: offset)
                }
                if let difference { return .differs(at: difference.offset, byte: difference.byte) }
            }
            if taken > 0 { try await self.pass(all: taken, of: self.lease) }
            // Bytes that may pass without asking the gate again.
            var free = 0
            while taken < chunk.count {
                if free == 0 { free = try await self.pass(chunk.count - taken, of: self.lease) }
                let granted = self.lease.reserve(free)
                if granted == 0 {
                    self.ask(.limitReached)
                    guard case .proceed = await self.lease.awaitAnswer() else { return .stopped }
                    continue
                }
                try await progress.writer.room(for: granted)
                try chunk.withBytes {
                    try progress.writer.write(UnsafeRawBufferPointer(rebasing: $0[taken..<(taken + granted)]))
                }
                self.lease.commit()
                taken += granted
                free -= granted
                // If the network is faster than the disk, the next chunk is always ready and reading it would not
                // suspend. The yield lets other fetches, and a revocation of this one, run on the same thread. A part in
                // memory is short.
                if part.memory == nil { await Task.yield() }
            }
            progress.offset += Int64(chunk.count)
            // The engine is asked before the next chunk is awaited, which may take long and may belong to another
            // segment. While bytes are only being compared, there is nothing to ask.
            if progress.offset >= progress.writer.position, self.lease.isAtLimit, let bodyEnd = response.bodyEnd,
                progress.offset < bodyEnd
            {
                self.ask(.limitReached)
                guard case .proceed = await self.lease.awaitAnswer() else { return .stopped }
            }
        }
    }
}

/// Some bytes of a chunk.
private struct ChunkPart: BodyChunk {
    private let chunk: any BodyChunk
    private let range: Range<Int>

    init(_ chunk: any BodyChunk, _ range: Range<Int>) { (self.chunk, self.range) = (chunk, range) }

    var count: Int { self.range.count }

    func withBytes<Answer>(_ body: (UnsafeRawBufferPointer) throws -> Answer) rethrows -> Answer {
        try self.chunk.withBytes { try body(UnsafeRawBufferPointer(rebasing: $0[self.range])) }
    }
}
