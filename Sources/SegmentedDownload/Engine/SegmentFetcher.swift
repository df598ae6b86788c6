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
    let suggestName: @Sendable (ResponseHead, AnnouncedDigests) -> String?
    let ask: @Sendable (Question) -> Void
    /// Where the fetch waits if bytes arrive faster than the rate limits allow.
    let pass: RatePass

    /// Runs until the lease is over. If the lease is revoked, its connection is closed at once.
    package func run() async -> LeaseEnd {
        await withTaskGroup(of: LeaseEnd?.self) { group in
            group.addTask { await self.fetch() }
            group.addTask {
                await self.lease.awaitRevocation()
                return nil
            }
            // A revocation cancels the fetch, and the end of the fetch cancels the wait for a revocation. The first
            // result counts.
            var end: LeaseEnd?
            while let result = await group.next() {
                group.cancelAll()
                end = end ?? result
            }
            return end ?? .revoked
        }
    }

    private func fetch() async -> LeaseEnd {
        do {
            if let offset = self.lease.order.forgetsFrom {
                try self.part()?.forget(from: offset)
            }
            return try await self.follower.withResponse(
                to: self.lease.order.request, isBroken: { self.lease.isFaulted || !Task.isCancelled }
            ) { head, response, announced, body in
                self.ask(.responded(response, suggestedName: self.suggestName(head, announced)))
                guard case .proceed = await self.lease.awaitAnswer() else { return .stopped }
                return try await self.write(body, of: response, announced.content)
            }
        } catch let failure as Failure {
            return self.lease.isRevoked ? .revoked : .failed(failure)
        } catch let error as StorageError {
            return .storageFailed(error.failure)
        } catch is CancellationError {
            return .revoked
        } catch {
            return .failed(Failure(.internal, "unexpected: \("\(error)".printable)"))
        }
    }

    /// - Parameter announced: The digest that the response's head states for its body.
    private func write(
        _ body: any ResponseBody, of response: RangeResponse, _ announced: ExpectedDigest?
    ) async throws -> LeaseEnd {
        guard let part = self.part() else {
            return .failed(Failure(.internal, "a body was accepted before the part file was created"))
        }
        // If the body has a digest, its bytes are claimed only after they were verified.
        var writer = SegmentWriter(
            part: part, from: self.lease.position, mark: self.lease.order.mark,
            holdsClaims: announced != nil && part.mayHold(response))
        var check = announced.map { ContentCheck($0, of: response) }
        let result: Result<LeaseEnd, any Error>
        do {
            result = .success(
                try await self.copy(
                    body, of: response, to: &writer, &check, compares: !part.isSame(asProvedBy: response)))
        } catch {
            result = .failure(error)
        }
        if case .success(.finished) = result { check?.hasEnded = true }
        // Bytes that differ from the disk were not written, and the difference is the more specific result.
        if case .success(.differs) = result { check = nil }
        if let failure = check?.failure { return .corrupt(failure) }
        // Bytes that were written are claimed even after an error, so that they are not fetched again.
        try writer.finish()
        return try result.get()
    }

    private func copy(
        _ body: any ResponseBody, of response: RangeResponse, to writer: inout SegmentWriter,
        _ check: inout ContentCheck?, compares: Bool
    ) async throws -> LeaseEnd {
        var offset = response.bodyStart
        while let chunk = try await body.next() {
            self.lease.received(chunk.count)
            if check != nil { chunk.withBytes { check?.update($0) } }
            var taken = 0
            // Bytes before the writing position are on disk already and must agree. Those from `writesFrom` on are not
            // compared: another connection has fetched them since this request was sent, and may be writing them now.
            if offset < writer.position {
                taken = Int(min(Int64(chunk.count), writer.position - offset))
                let compared = compares ? Int(min(Int64(taken), max(self.lease.order.writesFrom - offset, 0))) : 0
                let difference = try chunk.withBytes {
                    guard compared > 0 else { return SegmentWriter.Difference?.none }
                    return try writer.firstDifference(UnsafeRawBufferPointer(rebasing: $0[..<compared]), at: offset)
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
                try await writer.room(for: granted)
                try chunk.withBytes {
                    try writer.write(UnsafeRawBufferPointer(rebasing: $0[taken..<(taken + granted)]))
                }
                self.lease.commit()
                taken += granted
                free -= granted
                // If the network is faster than the disk, the next chunk is always ready and reading it would not
                // suspend. The yield lets other fetches, and a revocation of this one, run on the same thread.
                await Task.yield()
            }
            offset += Int64(chunk.count)
            // The engine is asked before the next chunk is awaited, which may take long and may belong to another
            // segment. While bytes are only being compared, there is nothing to ask.
            if offset >= writer.position, self.lease.isAtLimit, let bodyEnd = response.bodyEnd, offset < bodyEnd {
                self.ask(.limitReached)
                guard case .proceed = await self.lease.awaitAnswer() else { return .stopped }
            }
        }
        return .finished
    }
}
