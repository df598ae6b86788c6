package import SegmentedDownloadCore

/// Fetches one lease: asks, waits for the verdict, writes what comes, and says how it ended.
///
/// It decides nothing: every head goes to the engine before a byte is written, and so does every limit reached.
package struct SegmentFetcher: Sendable {
    /// What the fetcher tells the engine and waits for an answer to.
    package enum Question: Sendable {
        case responded(RangeResponse, suggestedName: String?)
        case limitReached
    }

    let lease: SegmentLease
    let follower: RedirectFollower
    /// The part file, there once the engine lets anything be written.
    let part: @Sendable () -> PartialFile?
    let suggestName: @Sendable (ResponseHead, AnnouncedDigests) -> String?
    let ask: @Sendable (Question) -> Void
    /// Where it waits when bytes come faster than they may.
    let pass: RatePass

    /// Runs until the lease is over; a revoked lease's connection is closed at once.
    package func run() async -> LeaseEnd {
        await withTaskGroup(of: LeaseEnd?.self) { group in
            group.addTask { await self.fetch() }
            group.addTask {
                await self.lease.awaitRevocation()
                return nil
            }
            // The fetch's end, whichever comes first: revocation cancels it, its end calls the watch off.
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

    /// - Parameter announced: the digest that the bytes of the response are said to have.
    private func write(
        _ body: any ResponseBody, of response: RangeResponse, _ announced: ExpectedDigest?
    ) async throws -> LeaseEnd {
        guard let part = self.part() else {
            return .failed(Failure(.internal, "a body was let through before there was a part file"))
        }
        // Of bytes that may turn out to be wrong nothing is claimed before that is known.
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
        // Where bytes differ from those on disk nothing was written, and more is known than that they are wrong.
        if case .success(.differs) = result { check = nil }
        if let failure = check?.failure { return .corrupt(failure) }
        // What is written is claimed whatever broke, so that it need not be fetched again.
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
            // The bytes before the first to be written are on disk already, and must agree; but for those that another connection
            // has brought since these were asked for, and may be writing now.
            if offset < writer.position {
                taken = Int(min(Int64(chunk.count), writer.position - offset))
                let compared = compares ? Int(min(Int64(taken), max(self.lease.order.writesFrom - offset, 0))) : 0
                let difference = try chunk.withBytes {
                    guard compared > 0 else { return Int64?.none }
                    return try writer.firstDifference(UnsafeRawBufferPointer(rebasing: $0[..<compared]), at: offset)
                }
                if let difference { return .differs(at: difference) }
            }
            if taken > 0 { try await self.pass(all: taken, of: self.lease) }
            // What may be taken without asking the gate again.
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
                // Where the network outruns the disk the next piece is always there already, and reading it would suspend
                // nothing: other fetches and the end of this one wait for the same thread.
                await Task.yield()
            }
            offset += Int64(chunk.count)
            // Asked before the next chunk is awaited, which may be long in coming and is not ours.
            // While bytes are only compared there is nothing to ask for.
            if offset >= writer.position, self.lease.isAtLimit, let bodyEnd = response.bodyEnd, offset < bodyEnd {
                self.ask(.limitReached)
                guard case .proceed = await self.lease.awaitAnswer() else { return .stopped }
            }
        }
        return .finished
    }
}
