import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// What the engine and the task that fetches a segment say to each other.
@Suite("A segment's lease")
struct SegmentLeaseTests {
    private static func lease(from offset: Int64 = 100) -> SegmentLease {
        SegmentLease(
            FetchOrder(
                lease: LeaseID(3), segment: Segment.ID(0), request: RangeRequest(lowerBound: 90, upperBound: 1000),
                writesFrom: offset, limit: 500))
    }

    /// Waits for the end of the lease while another task ends it.
    private static func answer(of lease: SegmentLease, while act: @escaping @Sendable () -> Void) async -> LeaseDecision
    {
        async let decision = lease.awaitAnswer()
        // Either before or after it waits: both must do.
        await Task.yield()
        act()
        return await decision
    }

    @Test("There is no room before the engine's answer, and then up to its limit")
    func room() async {
        let lease = Self.lease()
        #expect(lease.position == 100 && lease.isAtLimit && lease.reserve(10) == 0)
        lease.answer(.proceed(limit: 150))
        #expect(await lease.awaitAnswer() == .proceed(limit: 150))
        #expect(!lease.isAtLimit)
        #expect(lease.reserve(20) == 20 && lease.position == 100)
        lease.commit()
        #expect(lease.position == 120)
        #expect(lease.reserve(31) == 30)
        lease.commit()
        #expect(lease.position == 150 && lease.isAtLimit && lease.reserve(1) == 0)
    }

    @Test("An answer moves the position on and the limit out, and never back")
    func moves() {
        let lease = Self.lease()
        lease.answer(.proceed(limit: 200, from: 130))
        #expect(lease.position == 130 && lease.reserve(100) == 70)
        lease.commit()
        lease.answer(.proceed(limit: 150, from: 110))
        #expect(lease.position == 200 && lease.isAtLimit)
        lease.answer(.proceed(limit: 201))
        #expect(lease.reserve(5) == 1)
    }

    @Test("An answer beyond what is being written counts that as written")
    func movesOverReservation() {
        let lease = Self.lease()
        lease.answer(.proceed(limit: 200))
        #expect(lease.reserve(10) == 10)
        lease.answer(.proceed(limit: 200, from: 150))
        #expect(!lease.observation.isWriting)
        lease.commit()
        #expect(lease.position == 150)
    }

    @Test("A limit is lowered to what is being written at most, and not raised")
    func narrows() {
        let lease = Self.lease()
        lease.answer(.proceed(limit: 200))
        #expect(lease.reserve(30) == 30)
        #expect(lease.narrow(to: 300) == 200)
        #expect(lease.narrow(to: 150) == 150)
        #expect(lease.narrow(to: 120) == 130)
        lease.commit()
        #expect(lease.isAtLimit)
    }

    @Test("An observation says how far it is, what came, and whether something is being written")
    func observes() {
        let lease = Self.lease()
        lease.answer(.proceed(limit: 200))
        lease.received(7)
        lease.received(5)
        #expect(
            lease.observation
                == LeaseObservation(lease: LeaseID(3), position: 100, bytesReceived: 12, isWriting: false))
        _ = lease.reserve(10)
        #expect(lease.observation.isWriting && lease.observation.position == 100)
        lease.commit()
        #expect(!lease.observation.isWriting && lease.observation.position == 110)
    }

    @Test("The time that a rate limit holds it back adds up")
    func holding() {
        let lease = Self.lease()
        lease.beginHolding(now: .seconds(10))
        #expect(lease.observation.isHeld && lease.observation.held == .zero)
        lease.endHolding(now: .seconds(12))
        #expect(!lease.observation.isHeld && lease.observation.held == .seconds(2))
        lease.endHolding(now: .seconds(20))
        lease.beginHolding(now: .seconds(30))
        lease.endHolding(now: .seconds(31))
        #expect(lease.observation.held == .seconds(3))
    }

    @Test("An answer comes to the task that waits, and to one that waits later, once")
    func answers() async {
        let lease = Self.lease()
        #expect(await Self.answer(of: lease) { lease.answer(.proceed(limit: 150)) } == .proceed(limit: 150))
        lease.answer(.proceed(limit: 180))
        #expect(await lease.awaitAnswer() == .proceed(limit: 180))
        #expect(await Self.answer(of: lease) { lease.answer(.stop) } == .stop)
    }

    @Test("A revoked lease has its task stop, waiting or not", arguments: [false, true])
    func revocation(asFaulted: Bool) async {
        let lease = Self.lease()
        #expect(!lease.isRevoked && !lease.isFaulted)
        #expect(await Self.answer(of: lease) { lease.revoke(asFaulted: asFaulted) } == .stop)
        #expect(lease.isRevoked && lease.isFaulted == asFaulted)
        lease.answer(.proceed(limit: 500))
        #expect(await lease.awaitAnswer() == .stop)
    }

    @Test("A revocation cancels the task that fetches: before the fetch, during it, and not after it")
    func revocationCancels() async {
        let revoked = Self.lease()
        revoked.revoke(asFaulted: false)
        let running = Self.lease()
        let ended = Self.lease()
        await withTaskGroup { group in
            group.addTask {
                #expect(await revoked.withRevocation { Task.isCancelled })
            }
            group.addTask {
                let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
                await running.withRevocation {
                    running.revoke(asFaulted: true)
                    // A cancelled task has nothing to wait for.
                    for await _ in stream {}
                }
                #expect(Task.isCancelled)
                continuation.finish()
            }
            group.addTask {
                #expect(await !ended.withRevocation { Task.isCancelled })
                ended.revoke(asFaulted: false)
                #expect(!Task.isCancelled)
            }
            await group.waitForAll()
        }
    }

    @Test("A revocation may come from another thread just when the fetch begins or ends")
    func revocationBesideTheEnd() async {
        for _ in 0..<5000 {
            let lease = Self.lease()
            async let fetch: Void = lease.withRevocation { await Task.yield() }
            async let revocation: Void = Self.revoke(lease)
            _ = await (fetch, revocation)
            #expect(lease.isRevoked)
        }
    }

    private static func revoke(_ lease: SegmentLease) async { lease.revoke(asFaulted: false) }

    @Test("A cancelled task stops, waiting or not")
    func cancellation() async {
        let lease = Self.lease()
        await withTaskGroup { group in
            group.addTask { #expect(await lease.awaitAnswer() == .stop) }
            group.cancelAll()
            await group.waitForAll()
        }
    }
}
